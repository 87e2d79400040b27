{{/* What both shapes of the chart share. What only the newer one knows stands in _shape.tpl. */}}

{{- define "kubeovn.image" -}}
{{ .Values.global.registry.address }}/{{ .Values.global.images.kubeovn.repository }}:{{ .Values.global.images.kubeovn.tag }}
{{- end -}}

{{- define "kubeovn.dpdkImage" -}}
{{ .Values.global.registry.address }}/{{ .Values.global.images.kubeovn.repository }}:{{ .Values.DPDK_IMAGE_TAG }}
{{- end -}}

{{- define "kubeovn.natGatewayImage" -}}
{{- $nat := .Values.global.images.natgateway -}}
{{ .Values.global.registry.address }}/{{ $nat.repository }}:{{ default .Values.global.images.kubeovn.tag $nat.tag }}
{{- end -}}

{{/* A value of the chosen address family: dict "root" $ "key" "POD_CIDR". */}}
{{- define "kubeovn.stack" -}}
{{- $stack := .root.Values.networking.NET_STACK -}}
{{- if not (has $stack (list "ipv4" "ipv6" "dual_stack")) -}}
{{- fail (printf "networking.NET_STACK is %q; use ipv4, ipv6 or dual_stack" $stack) -}}
{{- end -}}
{{- index .root.Values $stack .key -}}
{{- end -}}

{{- define "kubeovn.labelKey" -}}
{{- splitList "=" .Values.MASTER_NODES_LABEL | first -}}
{{- end -}}
{{- define "kubeovn.labelValue" -}}
{{- if contains "=" .Values.MASTER_NODES_LABEL -}}{{- splitList "=" .Values.MASTER_NODES_LABEL | last -}}{{- end -}}
{{- end -}}

{{/* First internal address of every labelled node that the cluster shows; without a cluster, nothing. */}}
{{- define "kubeovn.nodeIPs" -}}
{{- $key := include "kubeovn.labelKey" . -}}
{{- $value := include "kubeovn.labelValue" . -}}
{{- $addresses := list -}}
{{- $nodes := (lookup "v1" "Node" "" "").items -}}
{{- range $node := $nodes -}}
{{- $labels := default dict $node.metadata.labels -}}
{{- if and (hasKey $labels $key) (or (eq $value "") (eq (toString (get $labels $key)) $value)) -}}
{{- $found := "" -}}
{{- range $node.status.addresses -}}{{- if and (eq .type "InternalIP") (eq $found "") -}}{{- $found = .address -}}{{- end -}}{{- end -}}
{{- if $found -}}{{- $addresses = append $addresses $found -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $nodes (not $addresses) (not .Values.MASTER_NODES) -}}
{{- fail (printf "no node has the label %s and MASTER_NODES is empty" .Values.MASTER_NODES_LABEL) -}}
{{- end -}}
{{- join "," $addresses -}}
{{- end -}}

{{- define "kubeovn.centralIPs" -}}
{{- default (include "kubeovn.nodeIPs" .) .Values.MASTER_NODES -}}
{{- end -}}
{{- define "kubeovn.nodeCount" -}}
{{- len (splitList "," (include "kubeovn.centralIPs" .)) -}}
{{- end -}}

{{- define "kubeovn.runAsUser" -}}
{{- ternary 0 65534 .Values.func.ENABLE_OVN_IPSEC -}}
{{- end -}}

{{- define "kubeovn.updateStrategy" -}}
{{- $wanted := (index .Values "ovs-ovn").updateStrategy.type -}}
{{- if not $wanted -}}
{{- $live := lookup "apps/v1" "DaemonSet" .Values.namespace "ovs-ovn" -}}
{{- $wanted = "RollingUpdate" -}}
{{- if $live -}}{{- $wanted = $live.spec.updateStrategy.type -}}{{- end -}}
{{- end -}}
type: {{ $wanted }}
{{- if eq $wanted "RollingUpdate" }}
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
{{- end -}}
{{- end -}}

{{/* The OVN line of the release that runs now, when another chart installed it; empty without a cluster. */}}
{{- define "kubeovn.versionCompatibility" -}}
{{- $live := lookup "apps/v1" "DaemonSet" .Values.namespace "ovs-ovn" -}}
{{- if $live -}}
{{- $chart := get (default dict $live.metadata.annotations) "chart-version" -}}
{{- if and $chart (ne $chart (printf "%s-%s" .Chart.Name .Chart.Version)) -}}
{{- $tag := (index $live.spec.template.spec.containers 0).image | splitList ":" | last | trimPrefix "v" -}}
{{- if regexMatch "^[0-9]+\\.[0-9]+\\.[0-9]+" $tag -}}
{{- if semverCompare ">=1.15.0-0" $tag -}}25.03
{{- else if semverCompare ">=1.13.0-0" $tag -}}24.03
{{- else if semverCompare ">=1.12.0-0" $tag -}}22.12
{{- else if semverCompare ">=1.11.0-0" $tag -}}22.03
{{- else -}}21.06{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kubeovn.podLabels" -}}
app: {{ . }}
component: network
type: infra
{{- end -}}

{{- define "kubeovn.resources" -}}
requests:
  {{- toYaml .requests | nindent 2 }}
limits:
  {{- toYaml .limits | nindent 2 }}
{{- end -}}

{{- define "kubeovn.tolerations" -}}
- effect: NoSchedule
  operator: Exists
- effect: NoExecute
  operator: Exists
- key: CriticalAddonsOnly
  operator: Exists
{{- end -}}

{{/* Only nodes with the central label. */}}
{{- define "kubeovn.centralAffinity" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: {{ include "kubeovn.labelKey" . }}
            {{- with include "kubeovn.labelValue" . }}
            operator: In
            values: [{{ . | quote }}]
            {{- else }}
            operator: Exists
            {{- end }}
{{- end -}}

{{/* No two pods of one workload on a node. */}}
{{- define "kubeovn.apart" -}}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          app: {{ . }}
{{- end -}}

{{- define "kubeovn.podEnv" -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: POD_IPS
  valueFrom:
    fieldRef:
      fieldPath: status.podIPs
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end -}}

{{/* Root for a moment: directories of the node become the user's that the daemons run as. */}}
{{- define "kubeovn.hostpathInit" -}}
- name: hostpath-init
  image: {{ include "kubeovn.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [chown, -R, "{{ include "kubeovn.runAsUser" .root }}:{{ include "kubeovn.runAsUser" .root }}"{{ range .mounts }}, {{ index . 1 }}{{ end }}]
  securityContext:
    runAsUser: 0
    allowPrivilegeEscalation: false
  volumeMounts:
    {{- range .mounts }}
    - name: {{ index . 0 }}
      mountPath: {{ index . 1 }}
    {{- end }}
{{- end -}}

{{- define "kubeovn.tlsVolume" -}}
- name: kube-ovn-tls
  secret:
    optional: true
    secretName: kube-ovn-tls
{{- end -}}
{{- define "kubeovn.tlsMount" -}}
- name: kube-ovn-tls
  mountPath: /var/run/tls
{{- end -}}

{{- define "kubeovn.ipFamilies" -}}
{{- if eq .Values.networking.NET_STACK "dual_stack" }}
ipFamilyPolicy: PreferDualStack
{{- end }}
{{- end -}}

{{/* Service of an agent: dict "root" $ "name" N "port" P. */}}
{{- define "kubeovn.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Values.namespace }}
  labels:
    app: {{ .name }}
spec:
  {{- include "kubeovn.ipFamilies" .root | indent 2 }}
  selector:
    app: {{ .name }}
  ports:
    - name: metrics
      port: {{ .port }}
{{- end -}}

{{/* Service of the central leaders: dict "root" $ "name" N "port" P "node" NODE-PORT. */}}
{{- define "kubeovn.leaderService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ include "kubeovn.centralNamespace" .root }}
  {{- include "kubeovn.centralServiceAnnotations" .root | indent 2 }}
spec:
  {{- include "kubeovn.centralServiceType" .root | indent 2 }}
  {{- include "kubeovn.ipFamilies" .root | indent 2 }}
  sessionAffinity: None
  selector:
    app: ovn-central
    {{- if include "kubeovn.leadersDiffer" .root }}
    {{ .name }}-leader: "true"
    {{- end }}
  ports:
    - name: {{ .name }}
      protocol: TCP
      port: {{ .port }}
      targetPort: {{ .port }}
      {{- with include "kubeovn.centralNodePort" . }}
      nodePort: {{ . }}
      {{- end }}
{{- end -}}

{{- define "kubeovn.hookAnnotations" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: hook-succeeded
{{- end -}}

{{/* Account, role, binding and Job of one hook. */}}
{{- define "kubeovn.hook" -}}
{{- $root := .root -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ $root.Values.namespace }}
  annotations:
    {{- include "kubeovn.hookAnnotations" (list .when 1) | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:{{ .account }}
  annotations:
    rbac.authorization.k8s.io/system-only: "true"
    {{- include "kubeovn.hookAnnotations" (list .when 2) | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .account }}
  annotations:
    {{- include "kubeovn.hookAnnotations" (list .when 3) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:{{ .account }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ $root.Values.namespace }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $root.Chart.Name }}-{{ .when }}-hook
  namespace: {{ $root.Values.namespace }}
  labels:
    app.kubernetes.io/managed-by: {{ $root.Release.Service | quote }}
    app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
  annotations:
    {{- include "kubeovn.hookAnnotations" (list .when 4) | nindent 4 }}
spec:
  completions: 1
  template:
    metadata:
      name: {{ $root.Release.Name }}
      labels:
        app: {{ .container }}
        component: job
    spec:
      restartPolicy: Never
      hostNetwork: true
      nodeSelector:
        kubernetes.io/os: linux
      tolerations:
        {{- include "kubeovn.tolerations" $root | nindent 8 }}
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: true
      containers:
        - name: {{ .container }}
          image: {{ include "kubeovn.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [bash, {{ .script }}]
          {{- with .env }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          {{- if .tls }}
          volumeMounts:
            {{- include "kubeovn.tlsMount" $root | nindent 12 }}
      volumes:
        {{- include "kubeovn.tlsVolume" $root | nindent 8 }}
          {{- end }}
{{- end -}}

{{- define "kubeovn.pullSecrets" -}}
{{- with .Values.global.registry.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
