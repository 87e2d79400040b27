import { offer } from './probe/offer.ts';

/** The second program of the probes' image: it makes keys. The first one starts it when it needs one. */
void offer(process.stdin, Date.now()).then((text) => process.stdout.write(`${text}\n`));
