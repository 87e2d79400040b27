import { Range, SemVer, satisfies } from 'semver';

/** Major, minor and patch: Helm drops what a vendor adds before it compares. */
function parseVersion(text: string): SemVer | undefined {
  const core = /^v?(\d+\.\d+\.\d+)(?:[-+].*)?$/.exec(text)?.[1];
  return core === undefined ? undefined : new SemVer(core);
}

/** One comparator of Helm's grammar in the words of node-semver. */
function translate(part: string): string {
  return part.replace(/^=>/, '>=').replace(/^=</, '<=').replace(/^==/, '=');
}

/** `1.29 - 1.33` keeps its blanks; anywhere else a blank or a comma means AND. */
function comparators(alternative: string): string[] {
  const text = alternative.trim();
  if (/^\S+\s+-\s+\S+$/.test(text)) return [text];
  return text
    .replaceAll(',', ' ')
    .replace(/([<>=!~^]+)\s+/g, '$1')
    .split(/\s+/)
    .filter((part) => part !== '');
}

function meets(version: SemVer, comparator: string): boolean {
  const excluded = /^!=(.*)$/.exec(comparator)?.[1];
  const met = satisfies(version, new Range(translate(excluded ?? comparator)));
  return excluded === undefined ? met : !met;
}

/**
 * Whether a Kubernetes version satisfies a chart's `kubeVersion`, by Helm's reading of it: comma or blank is AND, `||` is
 * OR, and of the version only major, minor and patch count (`1.34.2-vendor.1` is 1.34.2).
 * Undefined when either text cannot be read.
 */
export function kubeVersionSatisfies(kubernetesVersion: string, constraint: string): boolean | undefined {
  const version = parseVersion(kubernetesVersion);
  if (version === undefined) return undefined;
  try {
    const results = constraint.split('||').map((alternative) => {
      const parts = comparators(alternative);
      if (parts.length === 0) throw new TypeError('empty constraint');
      return parts.map((part) => meets(version, part)).every((met) => met);
    });
    return results.some((met) => met);
  } catch {
    return undefined;
  }
}
