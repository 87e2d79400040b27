/** What the sidecar beside OVN central answers: every component by itself, anew for every request. */
import { collector } from '../daemons/look.ts';
import type { Collectors } from '../server/collector.ts';
import { databaseFacts } from './database.ts';
import { northdFacts } from './northd.ts';
import type { CentralOptions } from './options.ts';
import { progressFacts } from './progress.ts';

export const centralCollectors = (options: CentralOptions): Collectors<'central'> => ({
  nb: collector(options, (look) => databaseFacts(options, 'nb', look)),
  sb: collector(options, (look) => databaseFacts(options, 'sb', look)),
  northd: collector(options, (look) => northdFacts(options, look)),
  progress: collector(options, (look) => progressFacts(options, look)),
});
