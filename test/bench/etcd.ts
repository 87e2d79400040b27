/** Looks past the API server: what is stored is asked of etcd, so that looking costs the contenders next to nothing. */
import { corpusNamespaces, corpusPrefix, customGroup } from './corpus.ts';

/** Keys of everything the corpus stores. */
const prefixes: readonly string[] = [
  ...['configmaps', 'secrets', 'services/specs', 'deployments', 'daemonsets', 'roles', 'rolebindings'].flatMap(
    (resource) => corpusNamespaces.map((namespace) => `/registry/${resource}/${namespace}/${corpusPrefix}-`),
  ),
  ...corpusNamespaces.map((namespace) => `/registry/${customGroup}/settings/${namespace}/${corpusPrefix}-`),
  `/registry/clusterroles/${corpusPrefix}-`,
  `/registry/clusterrolebindings/${corpusPrefix}-`,
  `/registry/apiextensions.k8s.io/customresourcedefinitions/settings.${corpusPrefix}-`,
];

const base64 = (key: string): string => Buffer.from(key).toString('base64');

/** The end of the range of all keys with this prefix. */
function rangeEnd(prefix: string): string {
  const bytes = Buffer.from(prefix);
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) + 1;
  return bytes.toString('base64');
}

const counts = prefixes.map((prefix) => ({ key: base64(prefix), range_end: rangeEnd(prefix), count_only: true }));

interface RangeAnswer {
  readonly count?: string;
  readonly kvs?: readonly { readonly mod_revision: string; readonly value?: string }[];
}

export interface EtcdView {
  /** How many objects of the corpus are stored. */
  stored(): Promise<number>;
  /** One custom resource by its key below /registry/; undefined when there is none. */
  object(key: string): Promise<unknown>;
  /** The newest revision that changed an object of the corpus. */
  newestRevision(): Promise<number>;
}

export function etcdView(url: string): EtcdView {
  async function transaction(ranges: readonly object[]): Promise<RangeAnswer[]> {
    const success = ranges.map((range) => ({ request_range: range }));
    const response = await fetch(`${url}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) });
    if (!response.ok) throw new Error(`etcd answered ${response.status}: ${await response.text()}`);
    const answer = (await response.json()) as { responses?: readonly { response_range?: RangeAnswer }[] };
    return (answer.responses ?? []).map(({ response_range }) => response_range ?? {});
  }
  return {
    async stored() {
      const answers = await transaction(counts);
      return answers.reduce((sum, { count }) => sum + Number(count ?? 0), 0);
    },
    async object(key) {
      const [answer] = await transaction([{ key: base64(`/registry/${key}`) }]);
      const value = answer?.kvs?.[0]?.value;
      return value === undefined ? undefined : JSON.parse(Buffer.from(value, 'base64').toString('utf8'));
    },
    async newestRevision() {
      const ranges = prefixes.map((prefix) => ({
        key: base64(prefix),
        range_end: rangeEnd(prefix),
        keys_only: true,
        limit: '1',
        sort_order: 'DESCEND',
        sort_target: 'MOD',
      }));
      const answers = await transaction(ranges);
      return Math.max(0, ...answers.flatMap(({ kvs }) => (kvs ?? []).map((kv) => Number(kv.mod_revision))));
    },
  };
}
