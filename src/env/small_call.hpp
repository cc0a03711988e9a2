// SPDX-License-Identifier: BSL-1.0
// A function that is called once, whatever its type, kept without the heap.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace redlock::env
{

/// Holds any `void()` that fits, called once at most. Can be moved, not copied.
template <std::size_t Bytes>
class small_call
{
  public:
    template <class Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, small_call>)
    explicit small_call(Function&& function) : kind_{&kind_of<std::decay_t<Function>>}
    {
        using kept = std::decay_t<Function>;
        static_assert(sizeof(kept) <= Bytes && alignof(kept) <= alignof(std::max_align_t));
        static_assert(std::is_nothrow_move_constructible_v<kept>);
        ::new (static_cast<void*>(storage_)) kept(std::forward<Function>(function));
    }
    small_call(small_call&& other) noexcept : kind_{std::exchange(other.kind_, nullptr)}
    {
        if (kind_ != nullptr)
        {
            kind_->move(other.storage_, storage_);
        }
    }
    small_call& operator=(small_call&& other) noexcept
    {
        if (this != &other)
        {
            this->~small_call();
            ::new (static_cast<void*>(this)) small_call{std::move(other)};
        }
        return *this;
    }
    ~small_call()
    {
        if (kind_ != nullptr)
        {
            kind_->destroy(storage_);
        }
    }

    void operator()() { kind_->call(storage_); }

  private:
    struct kind
    {
        void (*call)(std::byte*);
        void (*move)(std::byte* from, std::byte* to) noexcept; // Destroys what it leaves.
        void (*destroy)(std::byte*) noexcept;
    };

    template <class Kept>
    static Kept& in(std::byte* storage) noexcept
    {
        return *std::launder(reinterpret_cast<Kept*>(storage));
    }
    template <class Kept>
    static constexpr kind kind_of{
        [](std::byte* storage) { in<Kept>(storage)(); },
        [](std::byte* from, std::byte* to) noexcept
        {
            ::new (static_cast<void*>(to)) Kept(std::move(in<Kept>(from)));
            std::destroy_at(&in<Kept>(from));
        },
        [](std::byte* storage) noexcept { std::destroy_at(&in<Kept>(storage)); }};

    const kind* kind_;
    alignas(std::max_align_t) std::byte storage_[Bytes];
};

} // namespace redlock::env
