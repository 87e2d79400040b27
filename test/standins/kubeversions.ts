/**
 * Kubernetes version, a chart's kubeVersion, and whether Helm renders (undefined: one of the two cannot be read). One table
 * for our reading and for Helm itself.
 */
export const kubeVersionCases: readonly (readonly [string, string, boolean | undefined])[] = [
  ['1.34.2', '>= 1.29.0-0', true],
  ['v1.34.2', '>=1.29.0-0', true],
  ['1.34.2-gke.100', '>= 1.29.0-0', true],
  ['1.34.2-gke.100', '>= 1.29.0', true],
  ['1.34.2-gke.100', '> 1.34.2-0', true],
  ['1.34.2-gke.100', '< 1.34.2', false],
  ['1.29.0-rc.1', '>= 1.29.0-0', true],
  ['1.28.9', '>= 1.29.0-0', false],
  ['1.34.2', '>= 1.29.0, < 1.34.0', false],
  ['1.33.9', '>= 1.29.0, < 1.34.0', true],
  ['1.33.9', '>= 1.29.0 < 1.34.0', true],
  ['1.33.9', '>=1.29.0,<1.34.0 || >=1.40', true],
  ['1.41.0', '>=1.29.0,<1.34.0 || >=1.40', true],
  ['1.35.0', '>=1.29.0,<1.34.0 || >=1.40', false],
  ['1.33.1', '1.29 - 1.33', true],
  ['1.34.0', '1.29 - 1.33', false],
  ['1.34.2', '!= 1.34.2', false],
  ['1.34.3', '!=1.34.2', true],
  ['1.34.2', '1.34.x', true],
  ['1.34.2', '~1.34', true],
  ['1.34.2', '^1.30', true],
  ['1.34.2', '=> 1.29.0', true],
  ['1.34.2', '*', true],
  ['1.34.2+k3s1', '>= 1.34.2', true],
  ['1.34.2', 'latest', undefined],
  ['1.34.2', '>= 1.29 ||', undefined],
  ['one', '>= 1.29', undefined],
];
