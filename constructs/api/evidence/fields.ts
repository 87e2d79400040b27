import { z } from 'zod';
import { text } from '../fields.ts';

/** Field types that the facts of several kinds share. What a newer probe adds is read over, so objects are open. */

const largest64 = '18446744073709551615';

/** Unsigned 64-bit integer as a decimal string: numbers of JSON lose the low digits beyond 2^53. */
export const decimal64 = () =>
  z
    .string()
    .max(20)
    .regex(/^(0|[1-9][0-9]{0,19})$/)
    // Of one length, texts of digits stand in the order of their numbers.
    .refine((text) => text.length < largest64.length || text <= largest64);

/** Milliseconds that something took or was allowed to take. */
export const milliseconds = () => z.int().min(0).max(86_400_000);

/** Full id of a server or cluster of OVSDB. */
export const databaseUUID = () =>
  z
    .string()
    .max(36)
    .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

/** First hexadecimal digits of a server's id, at least four: all that members tell of one another. They name nobody by themselves. */
export const serverPrefix = () =>
  z
    .string()
    .max(36)
    .regex(/^[0-9a-f]{4}[0-9a-f-]*$/);

/** Endpoint as OVSDB writes it: `ssl:[10.0.0.1]:6643`, `unix:/run/x.sock`. */
export const endpointText = () => text(320);

/**
 * Which process answered: a daemon that was restarted between two looks has another start or another socket.
 * The start is in clock ticks since the node's boot, the socket is named by its inode.
 */
export const daemonIdentity = () => z.object({ socketInode: decimal64(), startTicks: decimal64() });
export type DaemonIdentity = z.output<ReturnType<typeof daemonIdentity>>;
