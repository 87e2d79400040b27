import { readdir } from '../../constructs/lib/files.ts';
import { fault, ok, type Result } from '../jsonrpc/fault.ts';
import type { ComponentFacts } from '../server/collector.ts';
import { placeOf } from './place.ts';

/** Endings of what a container runtime takes for a configuration. */
const configuration = /\.(conf|conflist|json)$/;
const mostFiles = 64;

/** Configurations of the container network, in the order in which a runtime reads them. */
export async function cniFiles(root: string, path: string): Promise<Result<ComponentFacts<'host', 'cni'>>> {
  const place = await placeOf(root, path);
  if (place.type === 'fault') return place;
  if (!place.value.exists) return ok({ path, files: [] });
  const names = await readdir(place.value.file).catch(() => undefined);
  if (names === undefined) return fault('denied', `${path} can not be read as a folder`);
  const files = names.filter((name) => configuration.test(name)).sort();
  return ok({ path, files: files.slice(0, mostFiles) });
}
