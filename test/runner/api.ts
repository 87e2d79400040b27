import { readFile } from 'node:fs/promises';
import { startApiServer } from '../apiserver/server.ts';
import { shareServer } from '../apiserver/shared.ts';
import type { ToolOptions } from '../tools/store.ts';
import type { LayerSetting } from './suite.ts';

/** The patches alone, without bodies: enough to see who used force. */
const patchPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', verbs: ['patch'] }, { level: 'None' }],
};

/** The one API server of the api layer; at the end its audit log is searched for a forced apply of ours. */
export async function openApiLayer(tools: ToolOptions): Promise<LayerSetting> {
  const server = await startApiServer({ tools, auditPolicy: patchPolicy });
  return {
    env: await shareServer(server),
    async end() {
      const log = server.auditLog === undefined ? '' : await readFile(server.auditLog, 'utf8').catch(() => '');
      await server.stop();
      return forcedApplies(log);
    },
  };
}

/** Audit lines of requests with `force=true` under one of our field managers. Others are adversaries that tests play. */
export function forcedApplies(log: string): string[] {
  return log.split('\n').flatMap((line) => {
    if (!line.includes('force=true')) return [];
    const { requestURI = '' } = JSON.parse(line) as { requestURI?: string };
    const query = new URL(requestURI, 'http://api.invalid').searchParams;
    const ours = query.get('force') === 'true' && /^keelson(-|$)/.test(query.get('fieldManager') ?? '');
    return ours ? [`the shared API server saw force=true: ${requestURI}`] : [];
  });
}
