/** Puts results where people read them. */
import { readFile, writeFile } from 'node:fs/promises';

const [begin, end] = ['<!-- results: begin -->', '<!-- results: end -->'];

/** The document with `results` between its two marks. @throws TypeError when it has none. */
export function withResults(document: string, results: string): string {
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new TypeError(`there is no place for results between ${begin} and ${end}`);
  return `${document.slice(0, from)}${begin}\n\n${results.trim()}\n\n${document.slice(to)}`;
}

export async function saveResults(file: string, results: string): Promise<void> {
  await writeFile(file, withResults(await readFile(file, 'utf8'), results));
}
