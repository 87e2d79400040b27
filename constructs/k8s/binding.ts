import {
  ClusterRole,
  ClusterRoleBinding,
  type ISubject,
  Role,
  RoleBinding,
  type SubjectConfiguration,
} from 'cdk8s-plus-28';
import { Construct } from 'constructs';
import { constructId } from './manifest.ts';
import { ownLabels } from './system.ts';

export const rbacGroup = 'rbac.authorization.k8s.io';
export const rbacVersion = `${rbacGroup}/v1`;

/** A ServiceAccount. */
export interface Account {
  readonly name: string;
  readonly namespace: string;
}

/** An account as a subject. The library's own would write out the empty API group, which is the default. */
class AccountSubject extends Construct implements ISubject {
  readonly #account: Account;

  constructor(scope: Construct, account: Account) {
    super(scope, 'subject');
    this.#account = account;
  }

  toSubjectConfiguration(): SubjectConfiguration {
    return { kind: 'ServiceAccount', ...this.#account };
  }
}

/** Binds an account to the role of its own name: in a namespace, or in the whole cluster where none is given. */
export class AccountBinding extends Construct {
  constructor(scope: Construct, account: Account, namespace?: string) {
    const { name } = account;
    const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
    super(scope, constructId({ apiVersion: rbacVersion, kind, namespace, name }));
    const subject = new AccountSubject(this, account);
    if (namespace === undefined) {
      const role = ClusterRole.fromClusterRoleName(this, 'role', name);
      new ClusterRoleBinding(this, 'binding', { metadata: { name, labels: ownLabels }, role }).addSubjects(subject);
    } else {
      const role = Role.fromRoleName(this, 'role', name);
      const metadata = { name, namespace, labels: ownLabels };
      new RoleBinding(this, 'binding', { metadata, role }).addSubjects(subject);
    }
  }
}
