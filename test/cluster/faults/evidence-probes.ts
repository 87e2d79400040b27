/** What kubelets count of the probes of containers, out of their metrics. Pure. */

/** How often a probe passed and failed. */
interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** By the kind of the probe, and `pod/container UID`. */
export type ProbeCounts = ReadonlyMap<string, Counts>;

const line = /^prober_probe_total\{([^}]*)\} (\S+)$/gm;
const label = /(\w+)="([^"]*)"/g;

/** `pod/container UID` of what a probe is of. */
export const containerOf = (probe: string): string => probe.split(' of ')[1] ?? '';

/** Reads what a kubelet serves at `/metrics/probes`. */
export function probeCounts(metrics: string): ProbeCounts {
  const counts = new Map<string, Counts>();
  for (const [, labels = '', value = ''] of metrics.matchAll(line)) {
    const named = new Map([...labels.matchAll(label)].map(([, name = '', text = '']) => [name, text]));
    const key = `${named.get('probe_type')} of ${named.get('pod')}/${named.get('container')} ${named.get('pod_uid')}`;
    const { passed, failed } = counts.get(key) ?? { passed: 0, failed: 0 };
    const more = Number(value);
    const isPass = named.get('result') === 'successful';
    counts.set(key, isPass ? { passed: passed + more, failed } : { passed, failed: failed + more });
  }
  return counts;
}

/**
 * Probes that failed last, as far as counts of two looks tell. The next failure of a readiness probe may be the one that counts,
 * and that of a liveness probe the one that ends the container.
 * @param known those of before; @param was undefined for the first look
 */
export function stillFailing(
  known: ReadonlySet<string>,
  was: ProbeCounts | undefined,
  is: ProbeCounts,
): ReadonlySet<string> {
  const failing = new Set<string>();
  for (const [key, { passed, failed }] of is) {
    const before = was === undefined ? { passed, failed } : (was.get(key) ?? { passed: 0, failed: 0 });
    // Where both were counted in between, which came last is not known.
    if (failed > before.failed || (passed <= before.passed && known.has(key))) failing.add(key);
  }
  return failing;
}
