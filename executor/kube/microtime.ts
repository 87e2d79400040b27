/** A MicroTime: exactly six digits of fraction, as the API server wants it. `ms` counts from 1970. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
