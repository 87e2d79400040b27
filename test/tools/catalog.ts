/** Programs that the tests and the quickstart build from pinned Go modules; `go/<module>` holds go.mod, go.sum and, where it is ours, the main package. */
export type ToolName =
  | 'kube-apiserver'
  | 'kubectl'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'coredns'
  | 'etcd'
  | 'kwok'
  | 'helm'
  | 'crane'
  | 'glua'
  | 'source-controller'
  | 'kustomize-controller'
  | 'metallb-controller';

export type ModuleName =
  | 'kubernetes'
  | 'coredns'
  | 'etcd'
  | 'kwok'
  | 'helm'
  | 'crane'
  | 'gopher-lua'
  | 'argo-cd'
  | 'source-controller'
  | 'kustomize-controller'
  | 'metallb';

export interface GoModule {
  readonly version: string;
  /** Values stamped by the linker: variable to value. */
  readonly stamps: Readonly<Record<string, string>>;
}

export interface Tool {
  readonly module: ModuleName;
  /** The main package; `.` for one beside go.mod. In a module with several tools its last part is the tool's name. */
  readonly package: string;
}

export const modules: Readonly<Record<ModuleName, GoModule>> = {
  kubernetes: {
    version: 'v1.34.2',
    stamps: {
      'k8s.io/component-base/version.gitVersion': 'v1.34.2',
      'k8s.io/component-base/version.gitMajor': '1',
      'k8s.io/component-base/version.gitMinor': '34',
    },
  },
  coredns: { version: 'v1.13.1', stamps: {} },
  etcd: { version: 'v3.6.8', stamps: {} },
  kwok: { version: 'v0.7.0', stamps: { 'sigs.k8s.io/kwok/pkg/consts.Version': 'v0.7.0' } },
  helm: {
    version: 'v3.19.2',
    stamps: {
      'helm.sh/helm/v3/internal/version.version': 'v3.19.2',
      'helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor': '1',
      'helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor': '34',
      'helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor': '1',
      'helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor': '34',
    },
  },
  crane: {
    version: 'v0.21.6',
    stamps: { 'github.com/google/go-containerregistry/cmd/crane/cmd.Version': 'v0.21.6' },
  },
  'gopher-lua': { version: 'v1.1.2', stamps: {} },
  'argo-cd': { version: 'v3.2.0', stamps: {} },
  'source-controller': { version: 'v1.9.0', stamps: {} },
  'kustomize-controller': { version: 'v1.9.0', stamps: {} },
  metallb: { version: 'v0.15.2', stamps: {} },
};

export const catalog: Readonly<Record<ToolName, Tool>> = {
  'kube-apiserver': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  kubectl: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl' },
  'kube-controller-manager': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  'kube-scheduler': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubelet: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  coredns: { module: 'coredns', package: '.' },
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  kwok: { module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok' },
  helm: { module: 'helm', package: 'helm.sh/helm/v3/cmd/helm' },
  crane: { module: 'crane', package: 'github.com/google/go-containerregistry/cmd/crane' },
  glua: { module: 'gopher-lua', package: 'github.com/yuin/gopher-lua/cmd/glua' },
  'source-controller': { module: 'source-controller', package: 'github.com/fluxcd/source-controller' },
  'kustomize-controller': { module: 'kustomize-controller', package: 'github.com/fluxcd/kustomize-controller' },
  'metallb-controller': { module: 'metallb', package: 'go.universe.tf/metallb/controller' },
};

/** Modules that carry CustomResourceDefinitions, which the tests read from them and nobody commits. */
export type DefinitionsName = 'source-controller' | 'kustomize-controller' | 'argo-cd' | 'metallb';

/** The Go module that ships the definitions, and the folder in it. */
export const definitions: Readonly<Record<DefinitionsName, { readonly path: string; readonly folder: string }>> = {
  'source-controller': { path: 'github.com/fluxcd/source-controller', folder: 'config/crd/bases' },
  'kustomize-controller': { path: 'github.com/fluxcd/kustomize-controller', folder: 'config/crd/bases' },
  'argo-cd': { path: 'github.com/argoproj/argo-cd/v3', folder: 'manifests/crds' },
  metallb: { path: 'go.universe.tf/metallb', folder: 'config/crd/bases' },
};
