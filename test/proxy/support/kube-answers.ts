const RESOURCES = [
  { name: 'configmaps', kind: 'ConfigMap' },
  { name: 'pods', kind: 'Pod' },
  { name: 'pods/log', kind: 'Pod' },
].map((one) => ({
  ...one,
  singularName: '',
  namespaced: true,
  verbs: ['get', 'list', 'create', 'patch', 'delete'],
}))

/** What kubectl asks of each cluster before it does something, by path, and one pod. */
export const KUBE_ANSWERS: Readonly<Record<string, unknown>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: RESOURCES },
  '/api/v1/namespaces/shop/pods/web': {
    ...{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web', namespace: 'shop' } },
    ...{ spec: { containers: [{ name: 'web', image: 'web' }] }, status: { phase: 'Running' } },
  },
}
