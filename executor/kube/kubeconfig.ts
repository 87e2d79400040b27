/** The one thing that is taken from the client library; named here, so that a bundle leaves its models out. */
export { KubeConfig } from '@kubernetes/client-node';
