import { test } from 'uvu';

/**
 * Loaded before every test file: uvu drops what a hook around the whole file throws, and such a file would fail
 * without a word.
 */
for (const key of ['before', 'after'] as const) {
  const add = test[key];
  test[key] = Object.assign((hook: Parameters<typeof add>[0]) => {
    add(async (context) => {
      try {
        await hook(context);
      } catch (error) {
        console.error(`thrown by ${key}():`, error);
        throw error;
      }
    });
  }, add);
}
