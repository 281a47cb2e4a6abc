import { listNodes, type NodeState } from '../../../core/server/nodes.ts'
import { type ReadConfiguration, reloadServer } from '../../../core/server/reload-server.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp } from '../wire.ts'

export interface ServerParts {
  readonly read: ReadConfiguration
  /** What this node is now. */
  self(): NodeState
  /** The settings in force. */
  settings(): readonly ShownSetting[]
}

/** One setting as it is shown: never with a secret. */
interface ShownSetting {
  readonly name: string
  readonly value: string
  readonly origin: string
  readonly canReload: boolean
  readonly description: string
}

export function adminServerRoutes(http: Http, { read, self, settings }: ServerParts): void {
  addRoute(http, 'POST /v1/admin/reload', ({ actor }) => reloadServer(http.core, actor, read))

  addRoute(http, 'GET /v1/admin/settings', async () => ({
    settings: settings().map(({ canReload, ...one }) => ({ ...one, reload: canReload })),
  }))

  addRoute(http, 'GET /v1/admin/nodes', async () =>
    (await listNodes(http.core, self())).map(({ isThis, seenAt, ...node }) => ({
      ...node,
      this: isThis,
      seen_at: timestamp(seenAt),
    })),
  )
}
