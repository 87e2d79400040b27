import type { Copy } from './render-support.ts';

/** What is refused, where, and the words that must stand in the message or the remedy. */
export interface RefusalCase {
  readonly what: string;
  readonly change: (copy: Copy) => void;
  readonly reason: string;
  readonly file: string;
  readonly line?: number;
  readonly path?: string;
  readonly says?: RegExp;
}

/** The file that a case adds beside the good ones. */
export const at = 'manifests/demo/20-config/bad.yaml';
export const configMap = (more: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  namespace: demo\n${more}`;
export const pod = (lines: string[]): string =>
  ['apiVersion: v1', 'kind: Pod', 'metadata:', '  name: bad', '  namespace: demo', 'spec:', ...lines, ''].join('\n');

export const add = (text: string) => (copy: Copy) => copy.write(at, text);
