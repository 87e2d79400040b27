import { readMigration } from '../../executor/addressbook/migrate/facts.ts';
import { proposeMigration } from '../../executor/addressbook/migrate/propose.ts';
import { readProblem } from '../addresses/book.ts';
import { migrationText } from '../addresses/migration.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';

/** `keelson addresses migrate`: proposes classes for Git and the steps that bring MetalLB's Services under the ledger. */
export async function run(invocation: Invocation, options: CommonOptions): Promise<ExitCode> {
  const read = await withClient(invocation, options, (client) => readMigration(client, invocation.signal));
  if (read.type !== 'read') throw new FailedWithProblems([readProblem(read)]);
  const migration = proposeMigration(read.facts);
  print(invocation, options.output, migration, () => migrationText(migration));
  return exitCodes.done;
}
