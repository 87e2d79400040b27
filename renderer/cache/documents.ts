/** Files that were read before: their values by digest, without parsing YAML again. */
import { sha256Hex } from '../../constructs/lib/digest.ts';
import { isObject, type JsonArray, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { parseYaml, type YamlDocument } from '../../constructs/lib/yaml.ts';
import type { ClusterFiles } from '../load/source.ts';
import type { RenderCache } from './store.ts';

/** Reads the text of a file; `file` is its name in problems. */
export type ParseDocuments = (
  text: string,
  file: string,
) => { readonly documents: readonly YamlDocument[]; readonly problems: readonly Problem[] };

export interface CachedDocuments {
  readonly parse: ParseDocuments;
  /** Keeps what had to be parsed. */
  keep(): Promise<void>;
}

const question = (hex: string): JsonValue => ({ text: hex });

/**
 * A parser that knows the files of a cluster that were read before. Only files without a problem are kept, so that every
 * problem is found again, with its line. Lines are looked for in the text itself when somebody asks.
 */
export async function cachedDocuments(cache: RenderCache, source: ClusterFiles): Promise<CachedDocuments> {
  const known = new Map<string, JsonArray>();
  const fresh = new Map<string, JsonArray>();
  await Promise.all(
    [...source.files].map(async ([path, bytes]) => {
      if (!path.endsWith('.yaml')) return;
      const hex = sha256Hex(bytes);
      const found = await cache.read('document', question(hex));
      if (Array.isArray(found)) known.set(hex, found);
    }),
  );
  return {
    parse(text, file) {
      const hex = sha256Hex(text);
      const found = known.get(hex);
      if (found !== undefined) return { documents: documentsOf(found, text, file), problems: [] };
      const parsed = parseYaml(text, file);
      if (parsed.problems.length === 0)
        fresh.set(
          hex,
          parsed.documents.map(({ value, line }) => ({ value, line })),
        );
      return parsed;
    },
    async keep() {
      await Promise.all([...fresh].map(([hex, value]) => cache.write('document', question(hex), value)));
    },
  };
}

function documentsOf(found: JsonArray, text: string, file: string): YamlDocument[] {
  let parsed: readonly YamlDocument[] | undefined;
  return found.filter(isObject).map(({ value = null, line }, index) => ({
    value,
    index,
    line: Number(line),
    locate(path) {
      parsed ??= parseYaml(text, file).documents;
      return parsed[index]?.locate(path) ?? { line: Number(line), column: 1 };
    },
  }));
}
