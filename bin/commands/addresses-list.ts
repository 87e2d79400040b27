import { holdingsOf } from '../../executor/addressbook/holdings.ts';
import { requireBook } from '../addresses/book.ts';
import { holdingsJson, holdingsText } from '../addresses/listing.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { print } from '../output.ts';

export interface Options extends CommonOptions {
  readonly class?: string;
  /** Of claims and workloads. */
  readonly namespace?: string;
}

/** `keelson addresses`: who holds which address, what waits, and how full the classes are. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { class: className, namespace } = options;
  const book = await withClient(invocation, options, (client) => requireBook(client, invocation.signal));
  const filter = {
    ...(className === undefined ? {} : { className }),
    ...(namespace === undefined ? {} : { namespace }),
  };
  const holdings = holdingsOf(book, filter, invocation.clock.now());
  print(invocation, options.output, holdingsJson(holdings), () => holdingsText(holdings, invocation.columns));
  return exitCodes.done;
}
