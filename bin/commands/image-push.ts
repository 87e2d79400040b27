import { tmpdir } from 'node:os';
import { basename, dirname, resolve } from 'node:path';
import type { RegistryMirror } from '../../constructs/api/cluster.ts';
import { parseImageRef } from '../../constructs/lib/imageref.ts';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { scratchFolder } from '../../constructs/lib/scratchfolder.ts';
import { copyAll } from '../../renderer/mirror/copy.ts';
import { layoutSource } from '../../renderer/mirror/layouts.ts';
import { registryTarget } from '../../renderer/mirror/registries.ts';
import { withBreaker } from '../../renderer/oci/breaker.ts';
import { readLayout } from '../../renderer/oci/layout.ts';
import { formatReference, normalizeImageRef, type Reference, registryHosts } from '../../renderer/oci/reference.ts';
import { FailedWithProblems } from '../failure.ts';
import { buildProgramImage, type ImageName } from '../imaging.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print } from '../output.ts';
import { connect } from '../supply.ts';
import { version } from '../version.ts';

export interface Options extends CommonOptions {
  readonly to: string;
  readonly from?: string;
  readonly ca?: string;
  readonly probe?: boolean;
  readonly both?: boolean;
}

interface Pushed {
  readonly reference: string;
  readonly digest: string;
}

const patience = { attempts: 4, initialMs: 500, factor: 2, maxMs: 10_000, jitter: 0.2 };

/** `keelson image push`: builds the image of this program, of its probes, or both, sends it, and prints the lines for `cluster.yaml`. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const to = placeOf(options.to);
  if (options.both === true) {
    refuseBeside(options);
    const executor = await pushOne(invocation, options, 'executor', to);
    const probe = await pushOne(invocation, options, 'probe', { ...to, repository: `${to.repository}-probe` });
    print(invocation, options.output, { executor, probe }, () => lines({ executor, probe }));
    return exitCodes.done;
  }
  const name = options.probe === true ? 'probe' : 'executor';
  const pushed = await pushOne(invocation, options, name, to);
  print(invocation, options.output, pushed, () => lines({ [name]: pushed }));
  return exitCodes.done;
}

/** @throws ProblemError where both images are asked for, and one of them as well. */
function refuseBeside({ from, probe }: Options): void {
  const beside = [...(from === undefined ? [] : ['--from']), ...(probe === true ? ['--probe'] : [])];
  if (beside.length === 0) return;
  throw new ProblemError([
    {
      reason: 'CommandInvalid',
      message: `--both builds and sends two images, and ${beside.join(' and ')} is about one`,
      value: beside.join(' '),
      remedy: 'leave one of them out',
    },
  ]);
}

async function pushOne(
  invocation: Invocation,
  options: Options,
  name: ImageName,
  to: Reference & { readonly tag: string },
): Promise<Pushed> {
  const scratch = await scratchFolder(tmpdir(), 'keelson-image-');
  try {
    const layout = options.from === undefined ? scratch.path : resolve(invocation.cwd, options.from);
    const digest =
      options.from === undefined
        ? (await buildProgramImage(name, layout)).digest
        : await onlyImage(layout, options.from);
    await send(invocation, options, { layout, digest, to });
    return { reference: formatReference({ ...to, digest }), digest };
  } finally {
    await scratch.dispose();
  }
}

/** For people: what to commit. */
const lines = (images: Readonly<Partial<Record<ImageName, Pushed>>>): string =>
  ['spec:', '  images:', ...Object.entries(images).map(([name, { reference }]) => `    ${name}: ${reference}`)].join(
    '\n',
  );

/** Where it goes; the tag is this version's unless one is named. @throws ProblemError */
function placeOf(text: string): Reference & { readonly tag: string } {
  const ref = parseImageRef(text);
  if (ref?.registry !== undefined && ref.digest === undefined)
    return { ...normalizeImageRef(ref), tag: ref.tag ?? version };
  const message =
    ref?.digest !== undefined
      ? '--to names a digest, which only the image itself has'
      : '--to is not a repository in a registry';
  throw new ProblemError([
    {
      reason: 'CommandInvalid',
      message,
      value: text,
      remedy: 'write host[:port]/repository, with or without :tag; the host has a dot, a port, or is localhost',
    },
  ]);
}

/** The one image of a layout. @throws ProblemError */
async function onlyImage(folder: string, named: string): Promise<string> {
  const read = await readLayout(folder);
  if (read.kind === 'invalid') throw new ProblemError(read.problems);
  const entries = read.kind === 'read' ? read.entries : [];
  const [only, ...more] = entries;
  if (only !== undefined && more.length === 0) return only.digest;
  throw new ProblemError([
    {
      reason: 'LayoutInvalid',
      message: only === undefined ? 'there is no image layout' : `it holds ${entries.length} images`,
      path: '--from',
      value: named,
      remedy: 'name the folder that `keelson image build --oci` wrote',
    },
  ]);
}

interface Parcel {
  readonly layout: string;
  readonly digest: string;
  readonly to: Reference;
}

/** @throws FailedWithProblems with what the registry said. */
async function send(invocation: Invocation, options: Options, { layout, digest, to }: Parcel): Promise<void> {
  const { clock, random, signal, cwd } = invocation;
  const ca = options.ca === undefined ? undefined : resolve(cwd, options.ca);
  const trusted: RegistryMirror[] =
    ca === undefined ? [] : [{ match: to.registry, mirror: to.registry, caFile: basename(ca) }];
  const connection = await connect(invocation, {
    folder: ca === undefined ? cwd : dirname(ca),
    hosts: registryHosts(to.registry),
    field: '--to',
    registries: trusted,
    retry: patience,
  });
  const spool = await scratchFolder(tmpdir(), 'keelson-image-');
  try {
    const { repository, registry } = to;
    const { problems } = await copyAll([{ root: { ref: { registry, repository, digest } }, to }], {
      source: layoutSource(layout),
      target: registryTarget(withBreaker(connection.session), spool.path, { clock, random, retry: patience }),
      concurrency: 4,
      onProgress: () => undefined,
      onDone: () => undefined,
      signal,
    });
    // Whatever keeps one part of the image away keeps the image away.
    const [first] = problems;
    if (first !== undefined)
      throw new FailedWithProblems([{ ...first, reason: 'ImageNotPushed', object: formatReference(to) }]);
  } finally {
    connection.http.close();
    await spool.dispose();
  }
}
