/** The last thing before the network: a process that has lost its Lease sends no more writes, whoever asks for them. */
import type { Transport, TransportRequest } from '../kube/transport.ts';

const leasePath = /^\/apis\/coordination\.k8s\.io\/[^/]+\/namespaces\/[^/]+\/leases(?:\/|$)/;
const reviewPath = /^\/apis\/(?:authorization|authentication)\.k8s\.io\//;

/** Whether a request changes the cluster. A dry run and a review store nothing. */
function writes({ method, path, query }: TransportRequest): boolean {
  return method !== 'GET' && query.dryRun !== 'All' && !reviewPath.test(path);
}

/**
 * A transport that asks before every write, also before one that is tried again after a long silence. Leases are let
 * through: each of them guards itself, and has to be given up after the end of a term.
 * @param check throws when this process may not write any more.
 */
export function guardedTransport(inner: Transport, check: () => void): Transport {
  return async (request) => {
    if (!writes(request) || leasePath.test(request.path)) return inner(request);
    check();
    // A process can be stopped between this and the first byte, while it waits for a connection.
    return inner({ ...request, beforeSend: check });
  };
}
