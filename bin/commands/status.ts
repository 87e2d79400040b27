import { addressesRelease } from '../../constructs/api/addresses.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { readBook } from '../../executor/addressbook/read.ts';
import { type LedgerSummary, summaryOf } from '../../executor/addressbook/summary.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import { summaryJson, summaryText } from '../addresses/summary.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { networksOf, networkText } from '../networks.ts';
import { print } from '../output.ts';
import { progressLine, type ReleaseView, readReleases, releaseDetail, releaseTable } from '../releases.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
  readonly watch?: boolean;
}

const pollMs = 1_000;

/** `keelson status [RELEASE]`: how far the releases are; with `--watch` every change as it comes. */
export async function run(invocation: Invocation, options: Options, name: string): Promise<ExitCode> {
  return withClient(invocation, options, async (client) => {
    if (options.watch !== true) {
      const releases = await chosen(client, invocation, options, name);
      const [first] = releases;
      const networks = await networksOf(client, releases, invocation.signal);
      const ledger = name === '' || name === addressesRelease ? await ledgerOf(client, invocation.signal) : undefined;
      const now = invocation.clock.now();
      const shown = releases.map((one) => ({
        ...one,
        ...(networks.get(one.name) ?? {}),
        ...(one.name === addressesRelease && ledger !== undefined ? { addresses: summaryJson(ledger) } : {}),
      }));
      print(invocation, options.output, shown, () =>
        [
          name !== '' && first !== undefined ? releaseDetail(first, now) : releaseTable(releases),
          ...[...networks.values()].map(({ installation }) => networkText(installation, now)),
          ...(ledger === undefined ? [] : [summaryText(ledger)]),
        ].join('\n\n'),
      );
      return exitCodes.done;
    }
    const told = new Map<string, string>();
    for (;;) {
      for (const release of await chosen(client, invocation, options, name)) {
        const line = progressLine(release);
        if (told.get(release.name) !== line) invocation.out(line);
        told.set(release.name, line);
      }
      if (invocation.signal.aborted) return exitCodes.done;
      await invocation.clock.sleep(pollMs, invocation.signal).catch(() => undefined);
      if (invocation.signal.aborted) return exitCodes.done;
    }
  });
}

/** The address ledger in numbers. Releases are told although there is none, or an account may not read it. */
async function ledgerOf(client: KubeClient, signal: AbortSignal): Promise<LedgerSummary | undefined> {
  const read = await readBook(client, signal);
  return read.type === 'read' ? summaryOf(read.book) : undefined;
}

async function chosen(
  client: KubeClient,
  invocation: Invocation,
  options: Options,
  name: string,
): Promise<ReleaseView[]> {
  const releases = await readReleases(client, options.namespace, invocation.signal);
  if (name === '') return releases;
  const found = releases.filter((release) => release.name === name);
  if (found.length > 0) return found;
  throw new ProblemError([
    {
      reason: 'UnknownRelease',
      message: `there is no Release ${options.namespace}/${name}`,
      remedy: `the Releases are ${releases.map((release) => release.name).join(', ') || 'none yet'}`,
    },
  ]);
}
