import { z } from 'zod';
import { requiredText, text } from '../fields.ts';
import { daemonIdentity, databaseUUID, decimal64, endpointText, milliseconds, serverPrefix } from './fields.ts';

/** What the sidecar beside OVN's databases and northd sees. */

/** How a server stands in its cluster; a standalone server is a member of nothing. */
const memberStatuses = ['standalone', 'joining', 'leaving', 'left', 'failed', 'disconnected', 'member'] as const;

const raftMember = z.object({
  sid: serverPrefix(),
  address: endpointText(),
  self: z.boolean(),
  /** Only a leader tells the rest. */
  phase: z.enum(['stable', 'adding', 'removing']).optional(),
  /** False for one that comes or goes and is none of those whose votes count now. */
  voting: z.boolean().optional(),
  nextIndex: decimal64().optional(),
  matchIndex: decimal64().optional(),
  lastMessageMs: decimal64().optional(),
});

const raftConnection = z.object({
  direction: z.enum(['in', 'out']),
  /** `0000` while the peer's id is not known. */
  sid: serverPrefix(),
  up: z.boolean(),
});

const raftLog = z.object({
  first: decimal64(),
  /** Index of the newest entry. */
  last: decimal64(),
  /** Computed from the counters, never the end of the log by itself. */
  committed: decimal64(),
  applied: decimal64(),
  unapplied: decimal64(),
  uncommitted: decimal64(),
});

/** Chassis that a replica of SB knows. */
const chassis = z.object({
  count: z.int().min(0).max(1_000_000),
  /** Names of all of them; absent where there are more than can be told. */
  names: z.array(requiredText(256)).max(4_096).optional(),
  /** Those that have not carried out what northd has handed out last, the furthest behind first. */
  behind: z.array(requiredText(256)).max(16),
});

/** One database as its own server tells it, from `_Server`, `cluster/status` and the file system. */
const database = z.object({
  name: requiredText(64),
  model: z.enum(['standalone', 'clustered', 'relay']),
  /** Columns of `_Server`: they lag behind a failure for up to two election timers. */
  connected: z.boolean(),
  leading: z.boolean(),
  /** Row of `_Server` that tells of it: another one whenever the server opens the database anew. */
  row: databaseUUID().optional(),
  /** Log index that clients see; a clustered server tells it once it has joined. */
  index: decimal64().optional(),
  cid: databaseUUID().optional(),
  sid: databaseUUID().optional(),
  address: endpointText().optional(),
  status: z.enum(memberStatuses),
  role: z.enum(['leader', 'follower', 'candidate']).optional(),
  term: decimal64().optional(),
  /** `self`, `unknown`, or the prefix of the leader's id. */
  leader: z
    .string()
    .max(36)
    .regex(/^(self|unknown|[0-9a-f]{4}[0-9a-f-]*)$/)
    .optional(),
  electionTimerMs: milliseconds().optional(),
  log: raftLog.optional(),
  members: z.array(raftMember).max(32),
  connections: z.array(raftConnection).max(128),
  /** Addresses that a joining server asks. */
  joiningFrom: z.array(endpointText()).max(32).optional(),
  /** Where clients are listened to. */
  listeners: z.array(endpointText()).max(32).optional(),
  /** `ok`, or what the server says of its file. */
  storage: text(512),
  /** Bytes left on the file system of the database. */
  freeBytes: decimal64(),
  inactivityProbeMs: milliseconds().optional(),
  /** Of SB only. */
  chassis: chassis.optional(),
  daemon: daemonIdentity(),
});
export type DatabaseFacts = z.output<typeof database>;

const northd = z.object({
  state: z.enum(['active', 'standby', 'paused']),
  /** Whether it is connected to each database. */
  nb: z.boolean(),
  sb: z.boolean(),
  /** Changes of state that the sidecar has seen; absent where it does not watch. */
  flaps: z.int().min(0).max(1_000_000).optional(),
  version: text(128).optional(),
  daemon: daemonIdentity(),
});
export type NorthdFacts = z.output<typeof northd>;

/** How far a change in NB has come: northd copies it to SB, chassis carry it out. */
const progress = z.object({
  nbCfg: decimal64(),
  sbCfg: decimal64(),
  hvCfg: decimal64(),
  /** Version of northd that SB tells to chassis which match it. */
  northdInternalVersion: text(128).optional(),
});

/** Facts by component; each of them is here or among the problems. */
export const centralFacts = z.object({
  nb: database.optional(),
  sb: database.optional(),
  northd: northd.optional(),
  progress: progress.optional(),
});
export type CentralFacts = z.output<typeof centralFacts>;
