import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../constructs/lib/clock.ts';
import { visible } from '../constructs/lib/visible.ts';
import { exitCodes } from './invocation.ts';
import { main } from './program.ts';
import type { ShareWork } from './render/shares.ts';

/** The command line: the only place that touches the process. */
async function start(): Promise<void> {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));

  let unwritten = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (`| head`) is no failure; whoever only goes on for it stops.
    if (error.code !== 'EPIPE' && !unwritten) {
      unwritten = true;
      process.stderr.write(`the output can not be written (${error.code ?? error.message})\n`);
    }
    controller.abort(new Error('nobody reads the output'));
  });
  process.stderr.on('error', () => undefined);
  process.once('exit', () => {
    if (unwritten) process.exitCode = exitCodes.failed;
  });

  process.exitCode = await main(process.argv.slice(2), {
    env: process.env,
    cwd: process.cwd(),
    clock: systemClock,
    random: Math.random,
    signal: controller.signal,
    out: (text) => process.stdout.write(`${visible(text)}\n`),
    err: (text) => process.stderr.write(`${visible(text)}\n`),
    terminal: process.stdout.isTTY === true,
    ...(process.stdout.isTTY === true ? { columns: process.stdout.columns } : {}),
    ...(process.argv[1] === undefined ? {} : { program: process.argv[1] }),
  });
}

if (isMainThread || parentPort === null) await start();
else {
  const { serveShare } = await import('./render/worker.ts');
  await serveShare(parentPort, workerData as ShareWork);
}
