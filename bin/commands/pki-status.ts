import { type PkiView, readPki } from '../../executor/pki/overview.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print, table } from '../output.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
}

/** `keelson pki status`: who signs for the executor and its probes, who is believed, and what comes next. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const outcome = await withClient(invocation, options, (client) =>
    readPki(client, options.namespace, invocation.signal),
  );
  if ('problem' in outcome) throw new FailedWithProblems([outcome.problem]);
  print(invocation, options.output, outcome.view, () => `${lines(outcome.view)}\n${authorities(outcome.view)}`);
  return exitCodes.done;
}

const origins = { own: 'made by the executor', provided: 'brought along' } as const;
const stages = { steady: 'steady', introduced: 'a new one is believed', promoted: 'a new one signs' } as const;

function lines({ origin, stage, next, asked }: PkiView): string {
  const after = next === undefined ? '' : `; ${next.step} at ${next.at}`;
  const waits = asked ? '; a rotation was asked for' : '';
  return `authority of evidence: ${origins[origin]}, ${stages[stage]}${after}${waits}`;
}

const authorities = ({ authorities: all }: PkiView): string =>
  table(
    ['AUTHORITY', 'DOES', 'FROM', 'TO'],
    all.map(({ id, does, from, to }) => [id, does === 'signs' ? 'signs' : 'is believed', from, to]),
  );
