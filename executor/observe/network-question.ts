/** What a client of the network probe is told to ask: the very checks that it is judged by afterwards. Pure. */
import { networkQuestionText, type WantedCheck } from '../../constructs/api/evidence/question.ts';
import { expectedChecks, type NetworkRound, type NetworkStack, wantedFamilies } from './network.ts';
import type { PodFacts } from './round.ts';

/** Of a family that the pods or the Service do not have there is nothing to ask; the judgement says so. */
export function networkQuestion(
  seen: Pick<NetworkRound, 'serverPods' | 'service'>,
  client: PodFacts,
  stack: NetworkStack | undefined,
  port: number,
): string {
  const { service } = seen;
  const checks = expectedChecks(seen, client, wantedFamilies(seen, stack)).flatMap(
    ({ target, family, addresses, servers }): WantedCheck[] => {
      const [address] = addresses;
      const [server] = servers;
      if (address === undefined) return [];
      // A Service may be answered by any of its servers, and a cluster has as many of those as nodes.
      if (target === 'service' || target === 'name' || server === undefined) return [{ target, family, address, port }];
      const { namespace, uid: podUID, node } = server;
      return [{ target, family, address, port, server: { namespace, podUID, node } }];
    },
  );
  return networkQuestionText({
    ...(service === undefined ? {} : { service: { namespace: service.namespace, name: service.name } }),
    checks,
  });
}
