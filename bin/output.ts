import type { JsonValue } from '../constructs/lib/json.ts';
import { visibleInLine } from '../constructs/lib/visible.ts';
import { dumpYaml } from '../constructs/lib/yaml.ts';
import type { Invocation, OutputFormat } from './invocation.ts';

/** Columns padded to the widest cell; the last one is not. A row is one line, whatever is in its cells. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(visibleInLine));
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) => row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))))
    .map((row) => row.join('  ').trimEnd())
    .join('\n');
}

/** Prints a result in the form that was asked for; `text` is what people read. */
export function print(invocation: Invocation, format: OutputFormat, value: unknown, text: () => string): void {
  const plain = JSON.parse(JSON.stringify(value)) as JsonValue;
  if (format === 'json') invocation.out(JSON.stringify(plain, null, 2));
  else if (format === 'yaml') invocation.out(dumpYaml(plain).trimEnd());
  else invocation.out(text());
}
