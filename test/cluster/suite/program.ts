import { pino } from 'pino';

// What the image test packs as the program: it needs a package, and tells what it was started as.
const log = pino({ base: null, timestamp: false });
log.info({ user: process.getuid?.(), arguments: process.argv.slice(2), node: process.version }, 'started');
setInterval(() => undefined, 60_000);
process.once('SIGTERM', () => process.exit(0));
