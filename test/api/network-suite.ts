import { suite, type Test } from 'uvu';
import { type Workshop, workshop } from './network-bed.ts';

/** A suite whose tests share one workshop. */
export function workshopSuite(name: string): Test<{ shop: Workshop }> {
  const test = suite<{ shop: Workshop }>(name);
  test.before(async (context) => {
    context.shop = await workshop();
  });
  test.after(({ shop }) => shop.close());
  return test;
}
