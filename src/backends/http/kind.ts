import Type, { type TObject, type TSchema } from 'typebox'
import { parseDuration } from '../../domain/duration.ts'
import { defineKind } from '../define-kind.ts'
import * as Field from '../fields.ts'
import { guardedField, type Kind, protectionField, secretField, upstreamField } from '../kind.ts'
import { createCredentials } from './credentials.ts'
import type { FieldSpec, Recipe } from './schema.ts'
import { createGrammar, formRegExp } from './scopes.ts'
import { requireBase } from './send.ts'
import { usesOf } from './uses.ts'

/** The kind that a checked recipe describes. */
export function kindOf(recipe: Recipe): Kind {
  const grammar = createGrammar(recipe)
  const { min_ttl: least, max_ttl: most, why } = recipe.limits ?? {}
  return defineKind({
    type: recipe.type,
    title: recipe.title,
    config: configOf(recipe),
    limits: {
      ...(least === undefined ? {} : { minTtlMs: parseDuration(least) ?? 0 }),
      ...(most === undefined ? {} : { maxTtlMs: parseDuration(most) ?? 0 }),
      ...(why === undefined ? {} : { why }),
    },
    revocation: recipe.revoke === undefined ? 'expiry_only' : 'exact',
    ...(isFindable(recipe) ? {} : { recovery: 'none' as const }),
    ...(recipe.service_accounts === undefined ? {} : { serviceAccounts: recipe.service_accounts }),
    scopes: {
      valid: grammar.valid,
      ...(recipe.scopes.places === undefined
        ? {}
        : { gives: grammar.gives as NonNullable<Kind['scopes']['gives']> }),
      forms: grammar.forms,
      help: grammar.help,
    },
    ...(recipe.environment === undefined ? {} : { environment: recipe.environment }),
    ...(recipe.uses === undefined ? {} : { uses: usesOf(recipe, grammar) as NonNullable<Kind['uses']> }),
    validate: requireBase,
    open: async (config, host, base) => createCredentials(recipe, grammar, config, host, base),
  })
}

/** Whether `revoke` needs nothing that only the reply to `issue` says. */
function isFindable({ revoke, list, issue }: Recipe): boolean {
  return revoke === undefined || list !== undefined || issue.handle === undefined
}

function configOf(recipe: Recipe): TObject {
  const { fields, scopes, base_url: base } = recipe
  const { default: preset, example } = base
  const own = Object.entries(fields).map(([name, field]) => [name, fieldOf(field, scopes)] as const)
  const given = Object.entries(fields).filter(([, field]) => field.example !== undefined)
  const address = { maxLength: 512, pattern: '^https?://[^?#@\\\\\\s]+$', description: 'Address of the API.' }
  return Type.Object(
    {
      base_url: Type.String(upstreamField(preset === undefined ? address : { ...address, default: preset })),
      ...Object.fromEntries(own),
      ca: Field.ca("PEM of the certificate authority to trust instead of the system's."),
      local: Field.local(),
      local_user: Field.localUser(),
    },
    {
      additionalProperties: false,
      examples: [
        {
          ...(example === undefined ? {} : { base_url: example }),
          ...Object.fromEntries(given.map(([name, field]) => [name, field.example])),
        },
      ],
    },
  )
}

function safeOf({ default: safe }: FieldSpec): (string | boolean)[] {
  return typeof safe === 'string' || typeof safe === 'boolean' ? [safe] : []
}

function fieldOf(field: FieldSpec, scopes: Recipe['scopes']): TSchema {
  let options: Record<string, unknown> = { description: field.description }
  if (field.default !== undefined) options['default'] = field.default
  if (field.secret === true) options = secretField(options)
  if (field.upstream === true) options = upstreamField(options)
  if (field.protection === true) options = protectionField(options)
  if (field.guarded === true) options = guardedField(options, ...safeOf(field))
  const schema = typeOf(field, options, scopes)
  return field.optional === true ? Type.Optional(schema) : schema
}

function typeOf(field: FieldSpec, options: Record<string, unknown>, scopes: Recipe['scopes']): TSchema {
  if (field.choices !== undefined)
    return Type.Union(
      field.choices.map((one) => Type.Literal(one)),
      options,
    )
  const form =
    field.form === undefined
      ? undefined
      : formRegExp(field.form, scopes).source.replaceAll(/\(\?<\w+>/g, '(?:')
  const pattern = form ?? field.pattern
  const text = {
    minLength: 1,
    maxLength: field.max_length ?? (field.secret === true ? 4096 : 256),
    ...(pattern === undefined ? {} : { pattern: `^(?:${pattern})$` }),
  }
  switch (field.type ?? 'text') {
    case 'integer':
      return Type.Integer(options)
    case 'boolean':
      return Type.Boolean(options)
    case 'list':
      return Type.Array(Type.String({ ...text, description: 'One of them.' }), {
        minItems: 1,
        maxItems: 64,
        ...options,
      })
    default:
      return Type.String({ ...text, ...options })
  }
}
