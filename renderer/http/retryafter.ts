/** Milliseconds that the headers of an answer ask to wait before the next attempt, or undefined. */
export function retryAfter(headers: ReadonlyMap<string, string>, now: number): number | undefined {
  const text = headers.get('retry-after');
  if (text === undefined) return undefined;
  if (/^[0-9]+$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
