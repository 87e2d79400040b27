import { join } from 'node:path';
import { access, readFile } from '../../constructs/lib/files.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import type { ComponentFacts } from '../server/collector.ts';

/** Modules that the network may use; which of them are loaded is told, nothing is loaded. */
const modulesOfInterest = new Set([
  'geneve',
  'ip6_tables',
  'ip_tables',
  'nf_conntrack',
  'openvswitch',
  'stt',
  'vport_geneve',
  'vxlan',
]);

/** The kernel's release, modules that are loaded, and whether it has IPv6. */
export async function kernelFacts(procDirectory: string): Promise<Result<ComponentFacts<'host', 'kernel'>>> {
  const text = (name: string) => readFile(join(procDirectory, name), 'utf8').catch(() => undefined);
  const [release, modules] = await Promise.all([text('sys/kernel/osrelease'), text('modules')]);
  if (release === undefined) return fault('protocol', 'the kernel does not tell its release');
  const loaded = (modules ?? '').split('\n').map((line) => line.split(' ')[0] ?? '');
  const ipv6 = await access(join(procDirectory, 'net', 'if_inet6')).then(
    () => true,
    () => false,
  );
  return ok({
    release: release.trim(),
    modules: loaded.filter((name) => modulesOfInterest.has(name)).sort(),
    ipv6,
  });
}
