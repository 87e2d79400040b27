/** Rounds of observation over many nodes: the program as images hold it, a real API server, real evidence servers. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { evidenceTrust, networkNamespace, ports, systemNamespace } from '../../../constructs/api/constants.ts';
import { imageEnvironment } from '../../../images/base.ts';
import { bundleInParts } from '../../../images/bundle.ts';
import type { AdminClient } from '../../apiserver/client.ts';
import { tiedDirectory } from '../../tools/directory.ts';
import { freePort } from '../../tools/ports.ts';
import { type Program, startProgram } from '../contenders/program.ts';
import type { BenchOptions } from '../options.ts';
import { objectsOf, openPlace, type Place } from '../place.ts';
import { busyShare, type MachineFacts, machineFacts } from '../proc.ts';
import { type RequestCounts, readRequests, requestsBetween } from '../requests.ts';
import { makeCluster } from './cluster.ts';
import { startFleets } from './processes.ts';

/** One round, as the program itself measured it, and what it cost until the next one began. */
export interface RoundFigures {
  readonly seconds: number;
  readonly well: number;
  readonly unknown: number;
  /** MiB resident once it was over. */
  readonly residentMiB: number;
  readonly cpuSeconds: number;
  readonly requests: RequestCounts;
  readonly portForwards: number;
}

export interface EvidenceResults {
  readonly machine: MachineFacts;
  readonly busyBefore: number;
  readonly nodes: number;
  readonly hanging: number;
  readonly refusing: number;
  readonly atOnce: number;
  readonly peakMiB: number;
  /** The first one enrols every probe. */
  readonly rounds: readonly RoundFigures[];
  /** How often servers were asked, the least and the most of those that answer. */
  readonly asked: { readonly least: number; readonly most: number };
}

export const latencyMs = 50;
const hangs = (n: number): boolean => n % 20 === 0;
const refuses = (n: number): boolean => n % 50 === 7;
const count = (nodes: number, of: (n: number) => boolean): number =>
  Array.from({ length: nodes }, (_, n) => n).filter(of).length;

const top = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const roundLimitMs = 180_000;

/** Value of a metric, by the text before it. */
function sample(text: string, start: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
}

async function portForwards(admin: AdminClient): Promise<number> {
  const { body } = await admin.expect('GET', '/metrics', { headers: { accept: 'text/plain' } });
  const lines = String(body).match(/^apiserver_request_total\{[^}]*subresource="portforward"[^}]*\} \S+$/gm) ?? [];
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

/** What a kubelet does: writes down whom the executor says to believe. */
async function copyTrust(admin: AdminClient, file: string): Promise<void> {
  const path = `/api/v1/namespaces/${networkNamespace}/configmaps/${evidenceTrust.name}`;
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await delay(100)) {
    const { status, body } = await admin.request('GET', path);
    if (status === 200) return writeFile(file, String(body.data[evidenceTrust.key]));
  }
  throw new Error('the executor tells probes nobody to believe');
}

export async function measureEvidence(
  options: BenchOptions,
  progress: (line: string) => void,
): Promise<EvidenceResults> {
  const work = await tiedDirectory('keelson-bench-evidence-');
  const place = await openPlace(progress);
  try {
    await bundleInParts(top('bin/keelson.ts'), join(work.path, 'program'));
    return await measureIn(place, work.path, options, progress);
  } finally {
    await place.close();
    await work.remove();
  }
}

async function measureIn(
  place: Place,
  folder: string,
  { nodes, rounds, atOnce }: BenchOptions,
  progress: (line: string) => void,
): Promise<EvidenceResults> {
  const { admin } = place.server;
  for (const definition of objectsOf(top('constructs/api/generated/crds'))) await place.setUp(definition);
  progress(`${nodes} nodes and pods`);
  const cluster = await makeCluster(admin, { nodes, hangs });
  const authoritiesFile = join(folder, 'ca.crt');
  const fleets = await startFleets(
    {
      directory: join(folder, 'tokens'),
      authoritiesFile,
      members: cluster.members.filter((_member, n) => !refuses(n)),
      ports: [ports.chassis, ports.chassisSpare],
      latencyMs,
    },
    2,
  );
  const metricsPort = await freePort();
  const program = startProgram(
    process.execPath,
    [
      ...[join(folder, 'program', 'keelson.mjs'), 'executor', '--kubeconfig', place.server.kubeconfig],
      ...['--namespace', systemNamespace, '--metrics-port', String(metricsPort), '--page-port', '0'],
      ...['--evidence', '--evidence-at-once', String(atOnce)],
    ],
    { PATH: process.env.PATH, NODE_OPTIONS: imageEnvironment.NODE_OPTIONS },
  );
  try {
    await program.says('lease leading', 30_000);
    await copyTrust(admin, authoritiesFile);
    const busyBefore = await busyShare();
    const follow = follower(program, admin, `http://127.0.0.1:${metricsPort}/metrics`, progress);
    await cluster.install();
    const seen: RoundFigures[] = [];
    while (seen.length < rounds) seen.push(await follow());
    const asked = await fleets.asked();
    const answering = cluster.members.filter(({ manner }, n) => manner === 'answers' && !refuses(n));
    const times = answering.map(({ address }) => asked.get(address) ?? 0);
    return {
      machine: machineFacts(),
      busyBefore,
      nodes,
      hanging: count(nodes, hangs),
      refusing: count(nodes, refuses),
      atOnce,
      peakMiB: program.usage().peakMiB,
      rounds: seen,
      asked: { least: Math.min(...times), most: Math.max(...times) },
    };
  } finally {
    await program.stop();
    await fleets.stop();
  }
}

/** Waits for the end of the next round, each time that it is called. */
function follower(program: Program, admin: AdminClient, url: string, progress: (line: string) => void) {
  let [age, number] = [Number.POSITIVE_INFINITY, 0];
  let before: { requests: RequestCounts; forwards: number } | undefined;
  return async (): Promise<RoundFigures> => {
    before ??= { requests: await readRequests(admin), forwards: await portForwards(admin) };
    for (const deadline = performance.now() + roundLimitMs; performance.now() < deadline; await delay(250)) {
      const text = await (await fetch(url)).text();
      const now = sample(text, 'keelson_evidence_age_seconds{');
      const ended = now !== undefined && now < age;
      age = now ?? age;
      if (!ended) continue;
      const nodesOf = (state: string): number =>
        sample(
          text,
          `keelson_observed_nodes{namespace="${networkNamespace}",name="main",part="chassis",state="${state}"}`,
        ) ?? 0;
      const after = { requests: await readRequests(admin), forwards: await portForwards(admin) };
      const figures: RoundFigures = {
        seconds: sample(text, 'keelson_evidence_round_duration_seconds{') ?? Number.NaN,
        well: nodesOf('well'),
        unknown: nodesOf('unknown'),
        residentMiB: residentMiB(program.pid),
        cpuSeconds: program.usage().cpuSeconds,
        requests: requestsBetween(before.requests, after.requests),
        portForwards: after.forwards - before.forwards,
      };
      before = after;
      number += 1;
      progress(`round ${number}: ${figures.seconds.toFixed(1)} s, ${figures.residentMiB.toFixed(0)} MiB`);
      return figures;
    }
    throw new Error(`no round ended within ${roundLimitMs} ms`);
  };
}
