// SPDX-License-Identifier: BSL-1.0
// A slot for a completion that is delivered after a step: a function of any type, stored without a heap allocation.
#pragma once

#include <boost/intrusive/slist.hpp>

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace redlock::runtime
{

/// Stores a `void()` function of limited size until it is called. The function is never moved; slots are passed between
/// lists, and reused.
class completion_slot : public boost::intrusive::slist_base_hook<>
{
  public:
    completion_slot() = default;
    completion_slot(const completion_slot&) = delete;
    completion_slot& operator=(const completion_slot&) = delete;
    ~completion_slot()
    {
        if (kind_ != nullptr)
        {
            kind_->destroy(storage_);
        }
    }

    /// Stores a function. Precondition: the slot is empty.
    template <class Function>
    void hold(Function&& function)
    {
        using kept = std::decay_t<Function>;
        static_assert(sizeof(kept) <= capacity && alignof(kept) <= alignof(std::max_align_t));
        assert(kind_ == nullptr);
        ::new (static_cast<void*>(storage_)) kept(std::forward<Function>(function));
        kind_ = &kind_of<kept>;
    }
    /// Calls the function once. The slot is empty afterwards, even if the function throws.
    void complete()
    {
        struct emptied
        {
            completion_slot& place;
            ~emptied()
            {
                const kind* const was = std::exchange(place.kind_, nullptr);
                was->destroy(place.storage_);
            }
        } const at_the_end{*this};
        kind_->call(storage_);
    }

  private:
    static constexpr std::size_t capacity = 192;

    struct kind
    {
        void (*call)(std::byte*);
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
        [](std::byte* storage) noexcept { std::destroy_at(&in<Kept>(storage)); }};

    const kind* kind_ = nullptr;
    alignas(std::max_align_t) std::byte storage_[capacity];
};

} // namespace redlock::runtime
