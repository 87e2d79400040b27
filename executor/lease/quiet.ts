/** Lets a promise run on its own whose only failure is that it was told to stop. */
export function discardRejection(promise: Promise<unknown>): void {
  promise.catch(() => undefined);
}
