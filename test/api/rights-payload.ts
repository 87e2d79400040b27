/** Manifests of one object of every kind that the network payload holds too, and of some that need rights of their own. */

/** Stands in a namespace that is there before any payload. */
const early = 'kube-system';
/** Is created by others, later than the roles. */
export const later = 'apps';

const image = `registry.example.com/keelson/keelson@sha256:${'e'.repeat(64)}`;

const documents = (texts: readonly string[]): string => texts.join('---');

const workload = (kind: string, namespace: string): string => `
apiVersion: apps/v1
kind: ${kind}
metadata: {name: web, namespace: ${namespace}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: ${image}
          env: [{name: KEY, valueFrom: {secretKeyRef: {name: web, key: key}}}]
`;

const configMap = (name: string, namespace: string, value: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: ${namespace}}
data: {value: "${value}"}
`;

const inNamespace = (namespace: string): string =>
  documents([
    `
apiVersion: v1
kind: ServiceAccount
metadata: {name: one, namespace: ${namespace}}
`,
    `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: apps-writer, namespace: ${namespace}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [update]}]
`,
    `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: apps-writer, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: apps-writer}
subjects: [{kind: ServiceAccount, name: one, namespace: ${namespace}}]
`,
    `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${namespace}}
spec: {selector: {app: web}, ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]}
`,
    configMap('goes', namespace, 'one'),
  ]);

const clusterScoped = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: apps-reader}
rules: [{apiGroups: [""], resources: [secrets], verbs: [watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: apps-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: apps-reader}
subjects: [{kind: ServiceAccount, name: one, namespace: ${later}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: widgets}
webhooks:
  - name: widgets.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {service: {namespace: ${later}, name: web, path: /}}
    rules: [{apiGroups: [other.example.com], apiVersions: [v1], operations: [CREATE], resources: [others], scope: "*"}]
`;

/** A definition in a group that other definitions are in too. */
export const definition = (kind: string): string => {
  const singular = kind.toLowerCase();
  return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${singular}s.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: ${kind}, plural: ${singular}s, singular: ${singular}, listKind: ${kind}List}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`;
};

const custom = (kind: string, name = 'first'): string => `
apiVersion: example.com/v1
kind: ${kind}
metadata: {name: ${name}, namespace: ${later}}
spec: {size: 1}
`;

/** Files of `manifests/demo` with everything, or all but one object. */
export const everything = (second: boolean) => ({
  'manifests/demo/10-base/kinds.yaml': documents([
    inNamespace(early),
    inNamespace(later),
    clusterScoped,
    definition('Widget'),
    definition('Gadget'),
  ]),
  'manifests/demo/20-web/web.yaml': documents(
    [early, later].flatMap((namespace) => [workload('Deployment', namespace), workload('DaemonSet', namespace)]),
  ),
  'manifests/demo/30-rest/rest.yaml': documents([
    ...(second ? [custom('Widget', 'second')] : []),
    custom('Widget'),
    custom('Gadget'),
    configMap('stays', later, 'one'),
  ]),
});

/** Files of `manifests/demo` with next to nothing. */
export const little = { 'manifests/demo/30-rest/rest.yaml': configMap('stays', later, 'two') };
