/** Metrics of what was observed and of what waits for it, taken from what the process knows when it is asked. */
import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../constructs/lib/clock.ts';
import { uidOf } from '../kube/types.ts';
import type { CellState, NodeRow } from '../observe/matrix.ts';
import type { Known } from '../page/page.ts';
import { releaseView } from '../page/release.ts';

const parts = ['kubelet', 'central', 'chassis', 'probe'] as const satisfies readonly (keyof NodeRow)[];
const states = ['well', 'broken', 'unknown'] as const satisfies readonly CellState[];

/** Registers them; a process that does not lead tells none. */
export function observationMetrics(registry: Registry, known: () => Known | undefined, clock: Clock): void {
  const registers = [registry];
  const rounds = function* () {
    const now = known();
    for (const installation of now?.installations ?? []) {
      const observed = now?.observed(uidOf(installation));
      const { namespace = '', name = '' } = installation.metadata;
      if (observed !== undefined) yield { observed, labels: { namespace, name } };
    }
  };
  new Gauge({
    name: 'keelson_evidence_age_seconds',
    help: 'Age of the last complete round of observation of an installation',
    labelNames: ['namespace', 'name'],
    registers,
    collect() {
      this.reset();
      for (const { observed, labels } of rounds())
        this.set(labels, Math.max(0, clock.monotonic() - observed.verdict.time.endedTick) / 1000);
    },
  });
  new Gauge({
    name: 'keelson_evidence_limit_seconds',
    help: 'Age beyond which a round of observation counts no more',
    labelNames: ['namespace', 'name'],
    registers,
    collect() {
      this.reset();
      for (const { observed, labels } of rounds()) this.set(labels, observed.limitMs / 1000);
    },
  });
  new Gauge({
    name: 'keelson_evidence_round_duration_seconds',
    help: 'How long the last round of observation took',
    labelNames: ['namespace', 'name'],
    registers,
    collect() {
      this.reset();
      for (const { observed, labels } of rounds()) {
        const { startedTick, endedTick } = observed.verdict.time;
        this.set(labels, (endedTick - startedTick) / 1000);
      }
    },
  });
  new Gauge({
    name: 'keelson_observed_nodes',
    help: 'Nodes by part and by how it stands there, in the last round of observation',
    labelNames: ['namespace', 'name', 'part', 'state'],
    registers,
    collect() {
      this.reset();
      for (const { observed, labels } of rounds())
        for (const part of parts)
          for (const state of states) {
            const rows = observed.matrix?.nodes ?? [];
            this.set({ ...labels, part, state }, rows.filter((row) => row[part].state === state).length);
          }
    },
  });
  new Gauge({
    name: 'keelson_gate_state',
    help: 'Gates of the phases of a Release: 1 open, 0 shut, -1 not known or bypassed',
    labelNames: ['release', 'phase', 'gate'],
    registers,
    collect() {
      this.reset();
      for (const { name: release, phases } of (known()?.releases ?? []).map(releaseView))
        for (const { name: phase, gates } of phases)
          for (const { name: gate, mark } of gates)
            this.set({ release, phase, gate }, mark === 'well' ? 1 : mark === 'broken' ? 0 : -1);
    },
  });
}
