import { Type } from 'typebox'
import {
  Backend,
  ChangeBackend,
  ChangeQuery,
  CheckQuery,
  CreateBackend,
  ForceQuery,
  Kind,
  NameParam,
  PageQuery,
} from '../../../api/admin.ts'
import { changeBackend, createBackend } from '../../../core/backends/configure-backend.ts'
import { type ConfiguredBackend, shownConfig } from '../../../core/backends/definition.ts'
import { deleteBackend } from '../../../core/backends/delete-backend.ts'
import { listBackends, readBackend } from '../../../core/backends/list-backends.ts'
import { formatRate } from '../../../domain/policy.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, isAfter, pageLimit, sortedAfter } from '../paging.ts'
import { presentBackend } from '../present-backend.ts'
import { optional, timestamp } from '../wire.ts'

const tags = ['admin: backends']

export function adminBackendRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/backends', {
    schema: {
      summary: 'All backends with their configuration, secrets redacted',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(Backend) },
    },
    handle: async (call) => {
      const { cursor, limit } = call.query
      const rest = (await listBackends(core, call.caller)).filter((one) => isAfter(one.name, cursor))
      return firstPage(call, rest, pageLimit(limit), ({ name }) => name).map(present)
    },
  })

  addRoute(http, 'POST /v1/admin/backends', {
    schema: {
      summary: 'Configure a backend; it is tried before it is stored',
      tags,
      body: CreateBackend,
      querystring: CheckQuery,
      response: { 200: Backend },
    },
    handle: async ({ caller, body, query, origin }) =>
      present(await createBackend(core, caller, body, query.check ?? true, origin)),
  })

  addRoute(http, 'GET /v1/admin/backends/:name', {
    schema: { summary: 'One backend', tags, params: NameParam, response: { 200: Backend } },
    handle: async ({ caller, params }) => present(await readBackend(core, caller, params.name)),
  })

  addRoute(http, 'PUT /v1/admin/backends/:name', {
    schema: {
      summary:
        'Change a backend. Fields that are left out keep their values; config is replaced, but keeps secrets that are left out or sent as [redacted]',
      tags,
      params: NameParam,
      body: ChangeBackend,
      querystring: ChangeQuery,
      response: { 200: Backend },
    },
    handle: async ({ caller, params, body, query, origin }) => {
      const options = { check: query.check ?? true, force: query.force ?? false }
      return present(await changeBackend(core, caller, params.name, body, options, origin))
    },
  })

  addRoute(http, 'DELETE /v1/admin/backends/:name', {
    schema: {
      summary: 'Delete a backend',
      tags,
      params: NameParam,
      querystring: ForceQuery,
      response: { 204: Type.Null() },
    },
    handle: async ({ caller, params, query, origin, reply }) => {
      await deleteBackend(core, caller, params.name, query.force ?? false, origin)
      return reply.code(204).send()
    },
  })
  kindRoute(http)
}

function kindRoute(http: Http): void {
  addRoute(http, 'GET /v1/admin/kinds', {
    schema: {
      summary: 'The kinds of backend, with the schemas of their configuration',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(Kind) },
    },
    handle: (call) => {
      const rest = sortedAfter([...http.core.backends.kinds.values()], call.query.cursor, ({ type }) => type)
      return firstPage(call, rest, pageLimit(call.query.limit), ({ type }) => type).map((kind) => ({
        type: kind.type,
        title: kind.title,
        revocation: kind.revocation,
        scopes: { help: kind.scopes.help, examples: [...kind.scopes.examples] },
        config: kind.config,
        params: kind.params,
      }))
    },
  })
}

function present(backend: ConfiguredBackend & { readonly warnings?: readonly string[] }) {
  return {
    ...presentBackend(backend),
    name: backend.name,
    created_at: timestamp(backend.createdAt),
    ...optional('rate', backend.rate === undefined ? undefined : formatRate(backend.rate)),
    ...optional('max_active', backend.maxActive),
    config: shownConfig(backend),
    ...optional('warnings', backend.warnings?.length === 0 ? undefined : backend.warnings),
  }
}
