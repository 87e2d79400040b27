/** The other side of a thread that renders a share. */
import type { MessagePort } from 'node:worker_threads';
import { systemClock } from '../../constructs/lib/clock.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { renderShare } from './share.ts';
import type { ShareAsked, ShareTold, ShareWork } from './shares.ts';

/** Renders what it was started with, writes when it is asked to, and ends when it is asked to. */
export async function serveShare(port: MessagePort, { renderShare: work }: ShareWork): Promise<void> {
  const tell = (told: ShareTold): void => port.postMessage(told);
  const stop = new AbortController();
  const asked = Promise.withResolvers<ShareAsked>();
  port.on('message', (ask: ShareAsked) => {
    if (ask === 'stop') {
      stop.abort(new Error('stopped'));
      port.close();
    }
    asked.resolve(ask);
  });
  const invocation = {
    env: work.env,
    cwd: work.cwd,
    clock: systemClock,
    random: Math.random,
    signal: stop.signal,
    out: (text: string) => tell({ type: 'said', text }),
    err: (text: string) => tell({ type: 'said', text }),
    terminal: false,
  };
  try {
    const share = await renderShare(invocation, work.options, work.folders);
    tell({ type: 'rendered', results: share.results });
    if ((await asked.promise) !== 'write') return;
    await share.write();
    tell({ type: 'written' });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const problems = error instanceof ProblemError ? { problems: error.problems } : {};
    tell({ type: 'failed', message, ...problems });
  }
}
