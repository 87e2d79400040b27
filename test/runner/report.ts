import type { FileResult } from './file.ts';

/** The run as it is told: each line goes out as soon as it is known. */
export interface Report {
  line(text: string): void;
  gate(name: string, problem: string, ms: number): void;
  file(layer: string, result: FileResult): void;
  /** Something that failed and is neither a gate nor a file. */
  failure(text: string): void;
  /** The slowest files, what failed, and the counts alone on the last line. Returns true when nothing failed. */
  end(): boolean;
}

const shownLines = 120;
const firstLines = 3;
const lastLines = 6;
const wordLength = 500;

/**
 * What failed in a file: the titles of its tests, the first with what was found. The others of a file often only follow
 * from it, and who sees nothing but the end of a run needs the cause.
 */
export function failedTests(output: string): string[] {
  const [first, ...others] = output.split(/^ *FAIL +(?=")/m).slice(1);
  if (first === undefined) return [];
  // The last one's words end where the counts begin.
  const said = (first.split(/^ {2}Total: /m, 1)[0] ?? '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^ +at /.test(line))
    .map((line) => line.trim().slice(0, wordLength));
  const [title = '', ...words] = said;
  const told =
    words.length <= firstLines + lastLines ? words : [...words.slice(0, firstLines), ...words.slice(-lastLines)];
  return [title, ...told.map((line) => `  ${line}`), ...others.map((other) => other.split('\n', 1)[0] ?? '')];
}

export function createReport(write: (text: string) => void): Report {
  let passed = 0;
  let failed = 0;
  const failures: string[] = [];
  const results: FileResult[] = [];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const indent = (text: string): string => {
    const lines = text.trimEnd().split('\n');
    if (lines.length <= shownLines) return lines.map((line) => `    ${line}`).join('\n');
    const half = shownLines / 2;
    const left = `(${lines.length - shownLines} lines between)`;
    return [...lines.slice(0, half), left, ...lines.slice(-half)].map((line) => `    ${line}`).join('\n');
  };
  const line = (text: string): void => write(`${text}\n`);
  return {
    line,
    gate(name, problem, ms) {
      line(`gate     ${name.padEnd(12)} ${problem === '' ? 'good' : 'FAILED'}  ${seconds(ms)}`);
      if (problem === '') return;
      failed += 1;
      failures.push(`gate ${name}`);
      line(indent(problem));
    },
    file(layer, result) {
      results.push(result);
      passed += result.passed;
      failed += result.failed;
      const counts = `${result.passed} passed${result.failed > 0 ? `, ${result.failed} FAILED` : ''}`;
      line(`${layer.padEnd(8)} ${result.file}  ${counts}  ${seconds(result.durationMs)}`);
      if (result.failed === 0) return;
      failures.push(`${result.file}: ${result.problems.join('; ') || `${result.failed} tests`}`);
      for (const words of failedTests(result.output)) failures.push(`    ${words}`);
      for (const problem of result.problems) line(`    ${problem}`);
      line(indent(result.output));
    },
    failure(text) {
      failed += 1;
      failures.push(text.split('\n')[0] ?? text);
      line(`FAILED   ${text}`);
    },
    end() {
      const slow = [...results].sort((a, b) => b.durationMs - a.durationMs).slice(0, 5);
      if (slow.length > 0)
        line(`slowest: ${slow.map(({ file, durationMs }) => `${file} ${seconds(durationMs)}`).join(', ')}`);
      if (failures.length > 0) line(`failed:\n${failures.map((failure) => `    ${failure}`).join('\n')}`);
      line(`${passed} passed, ${failed} failed`);
      return failed === 0;
    },
  };
}
