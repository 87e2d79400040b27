import { Range, SemVer, satisfies } from 'semver';

function parseVersion(text: string): SemVer | undefined {
  try {
    return new SemVer(text.replace(/^v/, ''));
  } catch {
    return undefined;
  }
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
  // Helm lets a pre-release in wherever the comparator names one itself, not only for the same major.minor.patch.
  const includePrerelease = /\d-[0-9A-Za-z]/.test(comparator) && !/\s-\s/.test(comparator);
  const excluded = /^!=(.*)$/.exec(comparator)?.[1];
  const range = new Range(translate(excluded ?? comparator), { includePrerelease });
  if (excluded === undefined) return satisfies(version, range, { includePrerelease });
  return !satisfies(version, range, { includePrerelease: true });
}

/**
 * Whether a Kubernetes version satisfies a chart's `kubeVersion`, by Helm's reading of it: comma or blank is AND, `||` is
 * OR, a pre-release such as `1.34.2-vendor.1` counts only where the comparator has one too (`>= 1.29.0-0`).
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
