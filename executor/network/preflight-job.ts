/** The Job that looks at one node, and what its pod says. Pure. */
import { labels, managedByValue } from '../../constructs/api/constants.ts';
import { parseEvidence } from '../../constructs/api/evidence.ts';
import { preflight } from '../../constructs/api/preflight.ts';
import { cut } from '../../constructs/lib/cut.ts';
import { digestOf } from '../../constructs/lib/digest.ts';
import { isObject, type JsonObject, type JsonValue, objectsOf } from '../../constructs/lib/json.ts';
import { type KubeObject, uidOf } from '../kube/types.ts';
import type { HostLook, HostQuestion } from './preflight.ts';

/** What the looks of one installation have in common. */
export interface PreflightPlan {
  /** Namespace of OVN central: what its pods may pull, these may. */
  readonly namespace: string;
  readonly installationUID: string;
  readonly image: string;
  readonly pullSecrets: readonly JsonObject[];
  readonly question: HostQuestion;
  /** Nodes of OVN central, in its order. */
  readonly nodes: readonly string[];
}

/** Seconds after which a Job is given up, and after which a finished one goes by itself. */
const seconds = { deadline: 300, kept: 600 } as const;

const topFolder = (path: string): string => path.split('/')[1] ?? '';

/**
 * Top folders of the paths. A folder that may be absent is never mounted itself: the runtime would make it, and a look would
 * have left something behind.
 */
const topFolders = ({ database, cni }: HostQuestion): string[] => [
  ...new Set([database, cni].map(topFolder).filter((folder) => folder !== '')),
];

/** Names a volume by its place: what a host calls its folders need not be a DNS label. */
const volumeName = (place: number): string => `host-${place}`;

/** What a Job was made for; a Job of another digest does not answer this question. */
const lookDigest = ({ image, question, pullSecrets }: PreflightPlan, node: string): string =>
  digestOf({ image, question, pullSecrets, node } as unknown as JsonValue);

const variable = (name: string, fieldPath: string): JsonObject => ({
  name,
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
});

const nonceFlag = '--nonce=';

/** The Job for a node. Its pod is bound to the node, since no scheduler has a say; and reads as root, and no more than that. */
export function hostJob(plan: PreflightPlan, name: string, node: string, nonce: string): KubeObject {
  const { namespace, installationUID, image, pullSecrets, question } = plan;
  const marks = { [labels.managedBy]: managedByValue, [preflight.label]: installationUID };
  const folders = topFolders(question);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace, labels: marks, annotations: { [preflight.lookFor]: lookDigest(plan, node) } },
    spec: {
      backoffLimit: 1,
      activeDeadlineSeconds: seconds.deadline,
      ttlSecondsAfterFinished: seconds.kept,
      template: {
        metadata: { labels: marks },
        spec: {
          nodeName: node,
          restartPolicy: 'Never',
          hostNetwork: true,
          dnsPolicy: 'Default',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          tolerations: [{ operator: 'Exists' }],
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
          ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: [...pullSecrets] }),
          containers: [
            {
              name: preflight.container,
              image,
              args: [
                ...['probe', 'host', `${nonceFlag}${nonce}`, `--database=${question.database}`],
                ...[`--cni=${question.cni}`, ...question.ports.map((port) => `--port=${port}`)],
              ],
              env: [
                variable('POD_NAMESPACE', 'metadata.namespace'),
                variable('POD_NAME', 'metadata.name'),
                variable('POD_UID', 'metadata.uid'),
                variable('NODE_NAME', 'spec.nodeName'),
              ],
              resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
              securityContext: {
                // A folder of databases is often closed to everybody but its owner.
                runAsUser: 0,
                runAsNonRoot: false,
                privileged: false,
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'], add: ['DAC_READ_SEARCH'] },
              },
              terminationMessagePath: preflight.message,
              volumeMounts: folders.map((folder, place) => ({
                name: volumeName(place),
                mountPath: `${preflight.root}/${folder}`,
                readOnly: true,
              })),
            },
          ],
          volumes: folders.map((folder, place) => ({
            name: volumeName(place),
            hostPath: { path: `/${folder}`, type: 'Directory' },
          })),
        },
      },
    },
  };
}

const part = (value: JsonValue | undefined, key: string): JsonObject => {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
};
const word = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

const jobCondition = (job: KubeObject, type: string): JsonObject | undefined =>
  objectsOf(job.status?.conditions).find((one) => one.type === type && one.status === 'True');

/** Whether a Job that is there is the very look that is wanted, and still to come: an old answer says nothing of now. */
export const isUnderWay = (job: KubeObject, plan: PreflightPlan, node: string): boolean =>
  job.metadata.annotations?.[preflight.lookFor] === lookDigest(plan, node) &&
  typeof job.metadata.deletionTimestamp !== 'string' &&
  jobCondition(job, 'Complete') === undefined &&
  jobCondition(job, 'Failed') === undefined;

/** Whether a Job was made by this executor's kind: what is not is never touched. */
export const isPreflight = (job: KubeObject): boolean =>
  job.metadata.labels?.[labels.managedBy] === managedByValue &&
  job.metadata.labels[preflight.label] !== undefined &&
  job.metadata.annotations?.[preflight.lookFor] !== undefined;

function nonceOf(job: KubeObject): string {
  const container = objectsOf(part(part(job.spec, 'template'), 'spec').containers)[0];
  const args = Array.isArray(container?.args) ? container.args.map(word) : [];
  return args.find((arg) => arg.startsWith(nonceFlag))?.slice(nonceFlag.length) ?? '';
}

const ownedBy = (pod: KubeObject, job: KubeObject): boolean =>
  objectsOf(pod.metadata.ownerReferences).some(({ uid, controller }) => uid === uidOf(job) && controller === true);

/** What keeps a pod from having looked. */
function hindrance(pod: KubeObject): string {
  const status = pod.status ?? {};
  const waiting = objectsOf(status.containerStatuses).map((one) => part(part(one, 'state'), 'waiting'))[0] ?? {};
  const scheduled = objectsOf(status.conditions).find((one) => one.type === 'PodScheduled' && one.status === 'False');
  const why = [waiting.reason, waiting.message, status.reason, status.message, scheduled?.message].map(word);
  const said = why.filter((one) => one !== '').join(': ');
  return `pod ${pod.metadata.name ?? ''} is ${word(status.phase) || 'Pending'}${said === '' ? '' : `: ${cut(said, 512)}`}`;
}

/** What the Job of a node has come to. `open`: it may still answer. */
export type JobReading =
  | { readonly type: 'look'; readonly look: HostLook }
  | { readonly type: 'open'; readonly message: string };

const unseen = (node: string, message: string): JobReading => ({
  type: 'look',
  look: { node, type: 'unseen', message },
});

/** Reads what a pod of this Job, and of no other, left as its last words. */
export function readJob(job: KubeObject, pods: readonly KubeObject[], node: string): JobReading {
  const own = pods.filter((pod) => ownedBy(pod, job));
  const done = own.find((pod) => pod.status?.phase === 'Succeeded');
  if (done !== undefined) return readPod(job, done, node);
  const failed = jobCondition(job, 'Failed');
  if (failed !== undefined) {
    const said = [failed.reason, failed.message].map(word).filter((one) => one !== '');
    return unseen(node, `Job ${job.metadata.name ?? ''} has failed: ${said.join(': ')}`);
  }
  const [pod] = own;
  return { type: 'open', message: pod === undefined ? 'its Job has no pod yet' : hindrance(pod) };
}

function readPod(job: KubeObject, pod: KubeObject, node: string): JobReading {
  const container = objectsOf(pod.status?.containerStatuses).find(({ name }) => name === preflight.container);
  const words = word(part(part(container, 'state'), 'terminated').message);
  const reading = parseEvidence(Buffer.from(words), { kind: 'host', nonce: nonceOf(job) });
  if (reading.outcome !== 'evidence')
    return unseen(node, `what its probe said can not be read (${reading.outcome}): is the probe's image an old one?`);
  const { subject, facts, problems } = reading.evidence;
  if (subject.podUID !== uidOf(pod) || subject.node !== node || word(pod.spec?.nodeName) !== node)
    return unseen(node, `it was answered by pod ${subject.podUID} on node ${subject.node}`);
  return { type: 'look', look: { node, type: 'seen', facts, problems } };
}
