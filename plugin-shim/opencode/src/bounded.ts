/** Collections of limited size (I44). When one is full, the least recently written entry is removed. */

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number

  constructor(limit: number) {
    super()
    this.#limit = limit
  }

  override set(key: K, value: V): this {
    super.delete(key)
    super.set(key, value)
    if (this.size > this.#limit) this.delete(this.keys().next().value as K)
    return this
  }
}

export class BoundedSet<K> {
  readonly #map: BoundedMap<K, true>

  constructor(limit: number) {
    this.#map = new BoundedMap(limit)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  /** True when the key is new. */
  add(key: K): boolean {
    const fresh = !this.#map.has(key)
    this.#map.set(key, true)
    return fresh
  }
}
