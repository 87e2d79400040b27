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

export function createReport(write: (text: string) => void): Report {
  let passed = 0;
  let failed = 0;
  const failures: string[] = [];
  const results: FileResult[] = [];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const indent = (text: string): string => {
    const lines = text.trimEnd().split('\n');
    const shown = lines.slice(-shownLines).map((line) => `    ${line}`);
    return [...(lines.length > shownLines ? [`    (${lines.length - shownLines} lines before)`] : []), ...shown].join(
      '\n',
    );
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
