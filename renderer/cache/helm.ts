/** What Helm rendered before, and was proven to render every time: by chart, values, versions, and nothing else. */
import type { DeterminismProof } from '../../constructs/api/lock.ts';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { RenderOutput } from '../helm/types.ts';
import type { RenderCache } from './store.ts';

export interface HelmCache {
  read(proof: DeterminismProof): Promise<RenderOutput | undefined>;
  write(proof: DeterminismProof, output: RenderOutput): Promise<void>;
}

const question = (proof: DeterminismProof): JsonValue => ({ ...proof });

/** The proof names the chart's digest, everything that Helm is told, and Helm's version. */
export function helmCache(cache: RenderCache): HelmCache {
  return {
    async read(proof) {
      const found = await cache.read('helm', question(proof));
      if (!isObject(found) || !Array.isArray(found.objects) || !Array.isArray(found.stripped)) return undefined;
      return { objects: found.objects.filter(isObject), stripped: found.stripped.map(String) };
    },
    write: (proof, { objects, stripped }) =>
      cache.write('helm', question(proof), { objects: [...objects], stripped: [...stripped] }),
  };
}
