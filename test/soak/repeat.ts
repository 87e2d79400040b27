import { startApiServer } from '../apiserver/server.ts';
import { shareServer } from '../apiserver/shared.ts';
import { runFile } from '../runner/file.ts';

export interface Repeats {
  readonly file: string;
  readonly runs: number;
  readonly failed: number;
}

/** Runs each file so often, one after the other, on one API server as the runner does; tells every failure at once. */
export async function repeatFiles(
  files: readonly string[],
  times: number,
  input: { readonly top: string; readonly env: NodeJS.ProcessEnv; readonly say: (line: string) => void },
): Promise<Repeats[]> {
  const { top, env, say } = input;
  const server = files.some((file) => file.startsWith('test/api/')) ? await startApiServer() : undefined;
  const shared = server === undefined ? {} : await shareServer(server);
  const results: Repeats[] = [];
  try {
    for (const file of files) {
      let failed = 0;
      const began = performance.now();
      for (let run = 1; run <= times; run += 1) {
        const result = await runFile(file, { top, env: { ...env, ...shared } });
        if (result.failed === 0) continue;
        failed += 1;
        say(`${file}, run ${run}: ${result.problems.join('; ')}\n${result.output.slice(-6_000)}`);
      }
      const seconds = (performance.now() - began) / 1000;
      say(`${file}: ${times - failed} of ${times} runs passed, ${(seconds / times).toFixed(1)} s each`);
      results.push({ file, runs: times, failed });
    }
  } finally {
    await server?.stop();
  }
  return results;
}
