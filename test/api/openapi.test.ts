import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes.ts'
import { startApp, type TestApp } from '../support/app.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | string[]
  readonly description?: string
  readonly properties?: Record<string, Schema>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly enum?: unknown[]
  readonly anyOf?: Schema[]
  readonly oneOf?: Schema[]
  readonly examples?: unknown[]
}
interface Parameter {
  readonly name: string
  readonly description?: string
  readonly schema: Schema
  readonly example?: unknown
}
interface Link {
  readonly operationId: string
  readonly parameters: Record<string, string>
}
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: Parameter[]
  readonly requestBody?: { content: Record<string, { schema: Schema }> }
  readonly responses: Record<
    string,
    {
      description: string
      content?: Record<string, { schema: Schema; examples?: object }>
      links?: Record<string, Link>
    }
  >
}
interface Document {
  readonly servers: { url: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    schemas: Record<string, Schema>
    examples: Record<string, { value: object; summary: string }>
  }
}

let app: TestApp
let document: Document
let operations: [name: string, operation: Operation][]
beforeAll(async () => {
  app = await startApp()
  document = (await app.local.get('/openapi.json')).body
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      one,
    ]),
  )
})
afterAll(() => app.close())

/** Every schema with its place; configurations of kinds describe themselves, without examples. */
function* schemas(): Generator<[place: string, schema: Schema]> {
  for (const [name, schema] of Object.entries(document.components.schemas)) yield* within(name, schema)
  for (const [name, { parameters = [] }] of operations)
    for (const { name: own, description, schema } of parameters)
      yield* within(`${name}?${own}`, { ...schema, ...(description && { description }) })
}
function* within(place: string, schema: Schema): Generator<[string, Schema]> {
  yield [place, schema]
  for (const [name, one] of Object.entries(schema.properties ?? {})) yield* within(`${place}.${name}`, one)
  if (schema.items) yield* within(`${place}[]`, schema.items)
}

const isText = ({ type }: Schema) => [type].flat().some((one) => one === 'string' || one === 'integer')

describe('the OpenAPI document', () => {
  test('has every route under its operationId, and each only once', () => {
    const ids = operations.map(([, { operationId }]) => operationId)
    expect([...ids].sort()).toEqual(
      Object.values(ROUTES)
        .map(({ id }) => id)
        .sort(),
    )
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^[a-z]+[A-Za-z]*$/)
  })

  test('names the server', () => {
    expect(document.servers).toMatchObject([{ url: 'https://mayfly.test' }])
  })

  test('describes every property and parameter, in words', () => {
    const silent = [...schemas()].filter(
      ([place, { description, $ref }]) =>
        /[.?]/.test(place) && !place.endsWith('[]') && $ref === undefined && (description ?? '').length < 4,
    )
    expect(silent.map(([place]) => place)).toEqual([])
  })

  test('has an example, or the values, of every text and number', () => {
    const parameters = new Set(
      operations.flatMap(([name, one]) =>
        (one.parameters ?? [])
          .filter((each) => each.example !== undefined)
          .map((each) => `${name}?${each.name}`),
      ),
    )
    const silent = [...schemas()].filter(
      ([place, schema]) =>
        isText(schema) &&
        !/^[A-Z]\w+Config\b/.test(place) &&
        !parameters.has(place) &&
        schema.enum === undefined &&
        (schema.examples ?? []).length === 0,
    )
    expect(silent.map(([place]) => place)).toEqual([])
  })

  test('names the schema of every body and every reply with fields', () => {
    const contents = operations.flatMap(([name, { requestBody, responses }]) =>
      [requestBody?.content ?? {}, ...Object.values(responses).map((one) => one.content ?? {})]
        .flatMap((content) => Object.values(content))
        .map(({ schema }): [string, Schema] => [name, schema.items ?? schema]),
    )
    expect(contents.length).toBeGreaterThan(100)
    for (const [name, schema] of contents) {
      const named = schema.$ref?.replace('#/components/schemas/', '')
      if (schema.properties !== undefined) expect([name, schema.$ref]).toEqual([name, expect.any(String)])
      if (named !== undefined) expect(document.components.schemas).toHaveProperty(named)
    }
  })

  test('says what each error is, and shows it', () => {
    for (const [name, { responses }] of operations) {
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        expect([name, status, description]).not.toContain('Default Response')
        if (!/^[45]/.test(status)) continue
        const examples = Object.keys(content['application/json']?.examples ?? {})
        expect(examples.length, `${name} ${status}`).toBeGreaterThan(0)
        for (const one of examples) expect(document.components.examples).toHaveProperty(one)
      }
    }
    for (const { summary } of Object.values(document.components.examples)) expect(summary).not.toBe('')
  })

  test('links what a reply names to operations that take it', () => {
    const byId = new Map(operations.map(([, one]) => [one.operationId, one]))
    const links = operations.flatMap(([, one]) =>
      Object.values(one.responses).flatMap((response) => Object.values(response.links ?? {})),
    )
    expect(links.length).toBeGreaterThan(40)
    for (const { operationId, parameters } of links) {
      const known = (byId.get(operationId)?.parameters ?? []).map(({ name }) => name)
      for (const [parameter, expression] of Object.entries(parameters)) {
        expect([operationId, ...known]).toContain(parameter)
        expect(expression).toMatch(/^\$response\.body#\/[\w/]+$/)
      }
    }
  })

  test('has no mark of ours but that of secrets', () => {
    const marks = JSON.stringify(document).match(/"x-[\w-]+":/g) ?? []
    expect([...new Set(marks)]).toEqual(['"x-secret":'])
  })
})
