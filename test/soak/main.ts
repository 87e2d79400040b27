/** `npm run soak`: what is prone to be flaky, again and again, and a long run of random trouble. No part of `npm test`. */
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { readOptions } from './options.ts';
import { report, table } from './outages/report.ts';
import { runOutages } from './outages/run.ts';
import { randomRun } from './random.ts';
import { repeatFiles } from './repeat.ts';

const options = readOptions(process.argv.slice(2), randomInt(2 ** 31));
const tell = options.output === 'json' ? console.error : console.log;
const say = (line: string): void => tell(`${new Date().toISOString().slice(11, 19)} ${line}`);
const top = fileURLToPath(new URL('../..', import.meta.url));
let failed = 0;

if (options.times > 0) {
  const results = await repeatFiles(options.files, options.times, { top, env: process.env, say });
  failed += results.reduce((sum, result) => sum + result.failed, 0);
}
if (options.minutes > 0) {
  say(`a random run of ${options.minutes} minutes; again with --times 0 --seed ${options.seed}`);
  try {
    const { rounds, actions } = await randomRun(options.minutes, options.seed, say);
    say(`the random run held: ${actions} actions, ${rounds} times at rest, seed ${options.seed}`);
  } catch (error) {
    failed += 1;
    say(`the random run did not hold: ${error instanceof Error ? error.stack : String(error)}`);
  }
}
if (options.outages.length > 0) {
  const outcomes = await runOutages(options.outages, say);
  console.log(options.output === 'json' ? report(outcomes) : table(outcomes));
  failed += outcomes.filter(({ problems }) => problems.length > 0).length;
}
process.exitCode = failed === 0 ? 0 : 1;
