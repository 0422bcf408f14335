/** The plugin, as opencode loads it. Nothing else is exported. */
declare const plugin: {
  readonly id: "reflectd"
  /** What opencode 1 calls; it gets hooks, or none where reflectd is switched off. */
  server(input: { client: unknown; directory: string }): Promise<Record<string, unknown>>
  /** What opencode 2 calls; it gets what to call at the end. */
  setup(context: unknown): (() => Promise<void>) | undefined
}
export default plugin
