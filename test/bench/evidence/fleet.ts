/**
 * A process of evidence servers. It is told on its standard input, in one line of JSON, which; it prints how many listen, and for
 * each further line how often each was asked. It ends with its input.
 */
import { createInterface } from 'node:readline';
import { type Fleet, type FleetOptions, startFleet } from '../../pure/evidence-fleet.ts';

let fleet: Fleet | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  if (fleet === undefined) {
    fleet = await startFleet(JSON.parse(line) as FleetOptions);
    console.log(JSON.stringify(fleet.ports.size));
  } else console.log(JSON.stringify([...fleet.asked]));
}
await fleet?.stop();
