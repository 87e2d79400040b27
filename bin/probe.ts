import { systemClock } from '../constructs/lib/clock.ts';
import { probe } from './probe/run.ts';

/** The program of the probes' image: `keelson probe` and nothing else, since a sidecar has no memory for the rest. */
const controller = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));

const [verb, ...args] = process.argv.slice(2);
void probe(verb === 'probe' ? args : [], {
  env: process.env,
  cwd: process.cwd(),
  clock: systemClock,
  random: Math.random,
  signal: controller.signal,
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
  terminal: false,
  // Keys are made by the program beside this one.
  ...(process.argv[1] === undefined ? {} : { program: `${process.argv[1]}-offer` }),
}).then((code) => {
  process.exitCode = code;
});
